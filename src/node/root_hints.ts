import type { Config } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import type { DnsRecursion } from "../isolate/mod.ts";
import {
  builtInHints,
  DELEGATIONS_BYTES,
  DELEGATIONS_BYTES_MIN,
  type Hint,
  parseHints,
} from "../resolver/recursive/mod.ts";

/**
 * How dns isolates are to ask name servers; `null`: they do not.
 *
 * @throws {SvcError} `invalid`, where the file of hints can't be read as such.
 */
export async function dnsRecursion(
  { recursion }: Config,
  isolates: number,
): Promise<DnsRecursion | null> {
  const { enabled, dnssec, qnameMinimisation, rootHintsFile } = recursion;
  if (!enabled) return null;
  const share = Math.floor(DELEGATIONS_BYTES / isolates);
  return {
    hints: rootHintsFile === null ? builtInHints() : await readHints(rootHintsFile),
    qnameMinimisation,
    dnssecOk: dnssec,
    delegationsBytes: Math.max(share, DELEGATIONS_BYTES_MIN),
  };
}

async function readHints(file: string): Promise<Hint[]> {
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (error) {
    throw new SvcError("invalid", `recursion.root_hints: ${file}: ${messageOf(error)}`);
  }
  const hints = parseHints(text);
  if (hints.length > 0) return hints;
  throw new SvcError("invalid", `recursion.root_hints: ${file}: holds no A or AAAA record`);
}
