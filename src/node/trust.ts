/** What answers are held against: trust anchors, exemptions, the clock. */
import { dirname, join } from "node:path/posix";
import type { ClockJudge } from "../clock/mod.ts";
import type { Config } from "../config/mod.ts";
import { encodeQuery, isAtOrBelow, Qtype } from "../dns/mod.ts";
import { parseTrustAnchors, ROOT_ANCHORS_TEXT, type TrustAnchor } from "../dnssec/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import type { DnsSupervisor } from "../isolate/mod.ts";
import { wireNames } from "./dns_upstreams.ts";
import { every } from "./every.ts";
import { TrustKeeper } from "./trust_keeper.ts";

const ANEW = { isAnew: true, isTraced: false, upstreams: [] };

/** Says whether a configuration has answers validated. */
export function validates({ recursion }: Config): boolean {
  return recursion.dnssec && (recursion.enabled || recursion.validateForwarded);
}

/**
 * The anchors of a configuration's file, or the built-in ones of the root.
 *
 * @throws {SvcError} `invalid`, where the file can't be read as anchors.
 */
export async function readAnchors({ recursion }: Config): Promise<readonly TrustAnchor[]> {
  const file = recursion.trustAnchorFile;
  const text = file === null ? ROOT_ANCHORS_TEXT : await readText(file);
  const { anchors, problems } = parseTrustAnchors(text);
  if (problems.length === 0) return anchors;
  const [{ line, message }] = problems;
  throw new SvcError("invalid", `recursion.trust_anchor: ${file}: line ${line} ${message}`);
}

async function readText(file: string): Promise<string> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    throw new SvcError("invalid", `recursion.trust_anchor: ${file}: ${messageOf(error)}`);
  }
}

/**
 * Names that are not validated: those configured, and those that some upstream has for its own. They
 * are in most cases names of a network at hand, of which the Internet says, and proves, that they are
 * not there. Where answers of upstreams are to be proven, an anchor of the configuration above or
 * below such names says that they can be.
 */
export function exemptNames(config: Config, anchors: readonly TrustAnchor[]): Uint8Array[] {
  const { recursion, upstreams } = config;
  const configured = recursion.trustAnchorFile === null ? [] : anchors;
  const isAnchored = (name: Uint8Array) =>
    recursion.validateForwarded &&
    configured.some(({ zone }) => isAtOrBelow(name, 0, zone, 0) || isAtOrBelow(zone, 0, name, 0));
  const own = wireNames(upstreams.flatMap(({ domains }) => domains));
  return [
    ...wireNames(recursion.negativeTrustAnchors),
    ...own.filter((name) => !isAnchored(name)),
  ];
}

/** Keeps what dns isolates are to validate by; `null`: nothing is validated. */
export async function openTrust(
  config: Config,
  clock: ClockJudge,
  dns: () => Pick<DnsSupervisor, "ask" | "renewTrust">,
): Promise<TrustKeeper | null> {
  if (!validates(config)) return null;
  const anchors = await readAnchors(config);
  const file = join(config.store.dir, "trust_anchors.json");
  return await TrustKeeper.open(anchors, exemptNames(config, anchors), {
    clock,
    read: () => readKept(file),
    write: (text) => writeKept(file, text),
    fetchKeys: async (zone) => {
      const query = encodeQuery(zone, Qtype.DNSKEY, { cd: true, edns: { dnssecOk: true } });
      return (await dns().ask(query, ANEW, new AbortController().signal)).message;
    },
    publish: (trust) => dns().renewTrust(trust),
    every,
  });
}

async function readKept(file: string): Promise<string | null> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Writes the file whole or not at all. */
async function writeKept(file: string, text: string): Promise<void> {
  const temporary = `${file}.new`;
  await Deno.mkdir(dirname(file), { recursive: true, mode: 0o700 });
  {
    using opened = await Deno.open(temporary, {
      write: true,
      create: true,
      truncate: true,
      mode: 0o600,
    });
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += await opened.write(bytes.subarray(at));
    await opened.syncData();
  }
  await Deno.rename(temporary, file);
}
