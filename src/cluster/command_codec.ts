import { deflateRawSync, inflateRawSync } from "node:zlib";
import { SvcError } from "../errors.ts";
import type { Command } from "../model/mod.ts";
import { ENTRY_BYTES_MAX, WireError, WireReader, WireWriter } from "../raft/mod.ts";
import { PROPOSAL_ID_LENGTH_MAX } from "../store/mod.ts";
import { COMMAND_BYTES_MAX } from "./limits.ts";

const FORMAT = 1;
/** Below, compressing brings nothing; above, a large import fits an entry. */
const DEFLATE_BYTES_MIN = 16 << 10;

/** A command as an entry of the log has it. */
export interface Proposal {
  readonly id: string;
  readonly command: Command;
}

/** @throws {SvcError} `invalid`, if it is too large for an entry. */
export function encodeCommand({ id, command }: Proposal): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(command));
  const isDeflated = json.length >= DEFLATE_BYTES_MIN;
  const w = new WireWriter();
  w.u8(FORMAT);
  w.flag(isDeflated);
  w.text(id);
  w.rest(isDeflated ? deflateRawSync(json) : json);
  const data = w.finish();
  if (data.length <= ENTRY_BYTES_MAX && json.length <= COMMAND_BYTES_MAX) return data;
  throw new SvcError(
    "invalid",
    `a change of ${mebibytes(json.length)} as JSON, ${
      mebibytes(data.length)
    } compressed, is more ` +
      `than a cluster takes at once, ${mebibytes(COMMAND_BYTES_MAX)} and ` +
      `${mebibytes(ENTRY_BYTES_MAX)}: make it in parts, or restore it on a node that is in no ` +
      "cluster, and have that one start it",
  );
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / (1 << 20) * 10) / 10} MiB`;
}

/** @throws {WireError} */
export function decodeCommand(data: Uint8Array): Proposal {
  const r = new WireReader(data);
  const format = r.u8();
  if (format !== FORMAT) throw new WireError(`a change of form ${format} is of another version`);
  const isDeflated = r.flag();
  const id = r.text(3 * PROPOSAL_ID_LENGTH_MAX);
  if (id === "" || id.length > PROPOSAL_ID_LENGTH_MAX) throw new WireError("a change has no ID");
  const command = parse(r.rest(ENTRY_BYTES_MAX), isDeflated);
  if (!isCommand(command)) throw new WireError("a change is no command");
  return { id, command };
}

function parse(bytes: Uint8Array, isDeflated: boolean): unknown {
  try {
    const json = isDeflated ? inflateRawSync(bytes, { maxOutputLength: COMMAND_BYTES_MAX }) : bytes;
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
  } catch (cause) {
    throw new WireError("a change is no JSON text", { cause });
  }
}

/** What it changes was decoded where it came in; `apply` refuses what it can't do. */
function isCommand(json: unknown): json is Command {
  const { change, actor, at, node } = (json ?? {}) as Record<string, Record<string, unknown>>;
  return typeof change?.type === "string" && typeof actor?.kind === "string" &&
    isTextOrNull(actor.name) && isTextOrNull(actor.address) && typeof node === "string" &&
    typeof at === "string" && !Number.isNaN(Date.parse(at));
}

function isTextOrNull(value: unknown): boolean {
  return value === null || typeof value === "string";
}
