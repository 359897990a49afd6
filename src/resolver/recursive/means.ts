import type { Cache } from "../../cache/mod.ts";
import type { HashedName, RecordView } from "../../dns/mod.ts";
import type { Asker, ResponseReader, Scrubber } from "../ask/mod.ts";
import type { KeptMessages } from "../flights/mod.ts";
import type { BelievedServers } from "./believed_servers.ts";
import type { Delegations } from "./delegations.ts";
import type { Hint } from "./hints.ts";
import type { LocalResponses } from "./local_responses.ts";
import type { NameServerReader } from "./name_server_reader.ts";
import type { NameServers } from "./name_servers.ts";
import type { Zones } from "./zones.ts";

/**
 * Says whether a server of `zone`, in the first `length` bytes of a response, denies that a name is
 * there by proofs that are about this very name, whether or not their signatures are good.
 */
export type DeniesName = (
  response: Uint8Array,
  length: number,
  zone: Uint8Array,
  name: Uint8Array,
) => boolean;

/** What all iterations share. */
export interface Means {
  readonly asker: Asker;
  readonly scrubber: Scrubber;
  readonly reader: NameServerReader;
  /** For messages that are kept or made here, while `asker.response` is of one that came in. */
  readonly kept: ResponseReader;
  readonly delegations: Delegations;
  readonly servers: NameServers;
  readonly zones: Zones;
  readonly believed: BelievedServers;
  readonly local: LocalResponses;
  readonly hints: readonly Hint[];
  readonly cache: Cache;
  readonly messages: KeptMessages;
  /** Scratch for what is read and left within a call. */
  readonly scratch: HashedName;
  readonly record: RecordView;
  readonly counts: Float64Array;
  /** Of every hash of a name. */
  readonly seed: number;
  readonly minimises: boolean;
  /** Signatures are asked for and kept whether or not the client wants them. */
  readonly dnssecOk: boolean;
  readonly deniesName: DeniesName;
  readonly nowMs: () => number;
  readonly nowSeconds: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Has the root's own name servers asked for, where that is due. */
  readonly prime: () => void;
  /** Nothing was sent because the process has no socket left. */
  readonly noteNoSocket: () => void;
  /** Says whether an upstream serves an uncompressed name. */
  readonly isForwarded: (name: Uint8Array, length: number) => boolean;
}
