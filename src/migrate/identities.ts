import { type IpPrefix, parseIp, parseMac } from "../addr/mod.ts";
import { findNameProblem } from "../model/mod.ts";

const NAME_LENGTH_MAX = 128;
/** What may stand in no name: see `findNameProblem`. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/** The first text that can be a name, cleaned of what nobody sees. */
export function firstName(texts: readonly (string | null | undefined)[]): string {
  for (const text of texts) {
    const name = Array.from((text ?? "").replace(UNSEEN, " ").trim()).slice(0, NAME_LENGTH_MAX)
      .join("").slice(0, NAME_LENGTH_MAX).trim();
    if (findNameProblem(name) === null) return name;
  }
  return "without a name";
}

/** A MAC address in its one form, or `null`; some write it without colons, or by two bytes. */
export function macOf(text: string): string | null {
  const digits = text.replace(/[:.-]/g, "").toLowerCase();
  const isMac = /^([0-9a-f]{2}[:-]?){5}[0-9a-f]{2}$|^([0-9a-f]{4}\.){2}[0-9a-f]{4}$/i.test(text);
  return isMac ? parseMac(digits.match(/../g)?.join(":") ?? "") : null;
}

/** A network that is written with an address in it, such as `192.168.1.7/24`; `null`: it is none. */
export function withoutHostBits(text: string): IpPrefix | null {
  const [address, length, ...rest] = text.split("/");
  const ip = parseIp(address);
  if (ip === null || rest.length > 0 || !/^\d{1,3}$/.test(length ?? "")) return null;
  const lengthBits = Number(length);
  if (lengthBits > ip.length * 8) return null;
  const network = ip.map((byte, i) =>
    byte & (0xff00 >> Math.min(8, Math.max(0, lengthBits - 8 * i)))
  );
  return { ip: Uint8Array.from(network), lengthBits };
}
