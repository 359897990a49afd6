import type { HttpAsk } from "../http/mod.ts";
import { type AdguardData, readAdguard } from "./adguard/read.ts";
import { adguardWishes } from "./adguard/wishes.ts";
import { PRODUCT_NAMES, type SourceRequest } from "./ask_source.ts";
import { type PiholeData, readPihole } from "./pihole/read.ts";
import { piholeWishes } from "./pihole/wishes.ts";
import type { Place, Wishes } from "./wishes.ts";

/** All that was read of a source, which holds no credentials. */
export type SourceData =
  | { readonly product: "adguard"; readonly data: AdguardData }
  | { readonly product: "pihole"; readonly data: PiholeData };

/** What requests go through, and what bounds them. */
export interface SourcePorts {
  readonly ask: HttpAsk;
  /** Ends the reading. */
  readonly signal: AbortSignal;
  /** Makes what ends a sign-out, which is sent whatever came of the reading. */
  readonly farewell: () => AbortSignal;
}

/**
 * Reads all that is taken of a source, whole.
 *
 * @throws {SvcError} `invalid`, when it does not let in; `unavailable`, when it breaks off or is not
 * what it is taken for.
 */
export async function readSource(
  { ask, signal, farewell }: SourcePorts,
  request: SourceRequest,
): Promise<SourceData> {
  return request.product === "adguard"
    ? { product: "adguard", data: await readAdguard(ask, request, signal) }
    : { product: "pihole", data: await readPihole(ask, request, signal, farewell) };
}

/** What a source has, in words of ours. */
export function wishesOf(source: SourceData, place: Place): Wishes {
  return source.product === "adguard"
    ? adguardWishes(source.data, place)
    : piholeWishes(source.data);
}

/** The product and its version, as people know it. */
export function titleOf(source: SourceData): string {
  const version = source.product === "adguard" ? source.data.status.version : source.data.version;
  return `${PRODUCT_NAMES[source.product]}${version === null ? "" : ` ${version}`}`;
}
