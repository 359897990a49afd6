import { parseIp } from "../../addr/mod.ts";
import { parseName } from "../../dns/mod.ts";

/** A name server and where it is. */
export interface Hint {
  /** Uncompressed. */
  readonly name: Uint8Array;
  readonly addresses: readonly Uint8Array[];
}

/** The root's name servers as IANA publishes them; asked once, for those of the day. */
const BUILT_IN = `
a.root-servers.net A 198.41.0.4
a.root-servers.net AAAA 2001:503:ba3e::2:30
b.root-servers.net A 170.247.170.2
b.root-servers.net AAAA 2801:1b8:10::b
c.root-servers.net A 192.33.4.12
c.root-servers.net AAAA 2001:500:2::c
d.root-servers.net A 199.7.91.13
d.root-servers.net AAAA 2001:500:2d::d
e.root-servers.net A 192.203.230.10
e.root-servers.net AAAA 2001:500:a8::e
f.root-servers.net A 192.5.5.241
f.root-servers.net AAAA 2001:500:2f::f
g.root-servers.net A 192.112.36.4
g.root-servers.net AAAA 2001:500:12::d0d
h.root-servers.net A 198.97.190.53
h.root-servers.net AAAA 2001:500:1::53
i.root-servers.net A 192.36.148.17
i.root-servers.net AAAA 2001:7fe::53
j.root-servers.net A 192.58.128.30
j.root-servers.net AAAA 2001:503:c27::2:30
k.root-servers.net A 193.0.14.129
k.root-servers.net AAAA 2001:7fd::1
l.root-servers.net A 199.7.83.42
l.root-servers.net AAAA 2001:500:9f::42
m.root-servers.net A 202.12.27.33
m.root-servers.net AAAA 2001:dc3::35
`;

/** The built-in hints. */
export function builtInHints(): Hint[] {
  return parseHints(BUILT_IN);
}

/**
 * Reads the A and AAAA records of a file of hints, `named.root` as IANA publishes it; other lines are
 * left aside, `NS` among them. None: it holds no such record.
 */
export function parseHints(text: string): Hint[] {
  const found = new Map<string, { name: Uint8Array; addresses: Uint8Array[] }>();
  for (const line of text.split(/\r?\n/)) {
    const match =
      /^(\S+)\s+(?:\d+\s+)?(?:IN\s+)?(?:\d+\s+)?(?:A|AAAA)\s+([0-9a-fA-F.:]+)\s*(?:;.*)?$/i
        .exec(line);
    const name = match === null ? null : parseName(match[1].toLowerCase());
    const address = match === null ? null : parseIp(match[2]);
    if (name === null || address === null) continue;
    const key = name.join();
    const hint = found.get(key) ?? { name, addresses: [] };
    hint.addresses.push(address);
    found.set(key, hint);
  }
  return [...found.values()];
}
