/** What answers are held against: trust anchors, exemptions, the clock. */
import type { ClockJudge } from "../clock/mod.ts";
import type { Config } from "../config/mod.ts";
import { isAtOrBelow } from "../dns/mod.ts";
import { parseTrustAnchors, ROOT_ANCHORS_TEXT, type TrustAnchor } from "../dnssec/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import type { DnsTrust } from "../isolate/mod.ts";
import { wireNames } from "./dns_upstreams.ts";

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

/** What dns isolates are to validate by; `null`: nothing is validated. */
export async function dnsTrust(config: Config, clock: ClockJudge): Promise<DnsTrust | null> {
  if (!validates(config)) return null;
  const anchors = await readAnchors(config);
  const negative = exemptNames(config, anchors);
  return { anchors, negative, believesClock: clock.isBelieved };
}
