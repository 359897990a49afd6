import { crc32 } from "node:zlib";
import { messageOf } from "../errors.ts";
import {
  type Entry,
  type HardState,
  INDEX_MAX,
  NOTHING_PERSISTED,
  type RaftSnapshot,
  readEntries,
  readHardState,
  readSnapshot,
  WireError,
  WireReader,
  WireWriter,
  writeEntries,
  writeHardState,
  writeSnapshot,
} from "../raft/mod.ts";
import { unavailable } from "./values.ts";

/** A file of the cluster's, as the system has it: what was written is durable once it is synced. */
export interface RaftFile {
  length(): Promise<number>;
  read(at: number, length: number): Promise<Uint8Array>;
  write(at: number, bytes: Uint8Array): Promise<void>;
  truncate(length: number): Promise<void>;
  sync(): Promise<void>;
  close(): void;
}

/** The folder of the store, for the cluster's files. */
export interface RaftDisk {
  /** `null`: there is none, and none is to be made. */
  open(name: string, mode: "make" | "find"): Promise<RaftFile | null>;
  /** Durably, in the place of what has that name. */
  rename(from: string, to: string): Promise<void>;
  /** What is not there is gone. */
  remove(name: string): Promise<void>;
}

/** Whose log it is. */
export interface LogOwner {
  readonly id: string;
  /** Grows whenever a store becomes another member. */
  readonly generation: number;
}

/** What a log file says when it was read to its end. */
export interface LogContent extends LogOwner {
  readonly hardState: HardState;
  readonly snapshot: RaftSnapshot;
  readonly entries: readonly Entry[];
}

/** What one record adds. */
export interface LogRecord {
  readonly hardState: HardState | null;
  /** In the place of all entries. */
  readonly snapshot: RaftSnapshot | null;
  /** In the place of all from the first one's index on. */
  readonly entries: readonly Entry[];
}

/** Why a file can't be gone on with: it may have lost what was promised. */
export class DamagedLog extends Error {
  override readonly name = "DamagedLog";
}

export const LOG_FILE = "raft.log";
/** What is to take its place. */
const NEXT_FILE = "raft.log.new";

/**
 * The file is always longer than what it holds, by zeros, and grows in such steps: a file that is cut
 * short shows, and so do sectors that a crash kept from being written.
 */
const GROWTH_BYTES = 256 << 10;
/** A disk writes such a piece whole or not at all. */
const SECTOR_BYTES = 512;
/** Most bytes of a file: a store that can't apply what is committed takes no more. */
export const LOG_BYTES_MAX = 64 << 20;
const ENTRIES_MAX = 1 << 20;
const FORMAT = 1;

/** A record: a mark, its length and that inverted, its bytes, their CRC-32, a mark that is not 0. */
const HEAD_BYTES = 9;
const TAIL_BYTES = 5;
const FIRST_MARK = 0xd7;
const LAST_MARK = 0xa5;
const OWNER_ID_BYTES_MAX = 512;

const Part = { Owner: 1, HardState: 2, Snapshot: 4 } as const;

/**
 * What a member of a cluster must not forget, in one file beside the store: records one after
 * another, each durable when `append` returns. A record that a crash cut off was never durable, so
 * nobody counts on it: its missing sectors are zeros, and nothing follows it. It is left out. Whatever
 * else is not as it was written may have been promised, and is a `DamagedLog`.
 */
export class RaftLog {
  readonly #disk: RaftDisk;
  #file: RaftFile;
  #content: LogContent;
  #end: number;
  #length: number;
  /** A failed append may have left something after the end. */
  #isUnclean = false;
  /** It has the name of the log in use. */
  #isAdopted = true;
  /** Stands in the content and not yet in the file. */
  #owed: RaftSnapshot | null = null;

  private constructor(
    disk: RaftDisk,
    file: RaftFile,
    content: LogContent,
    end: number,
    length: number,
  ) {
    this.#disk = disk;
    this.#file = file;
    this.#content = content;
    this.#end = end;
    this.#length = length;
  }

  /**
   * The log of `owner`, in whichever file it is; a change of owners that was decided is finished.
   *
   * @throws {DamagedLog} If there is none, or it lacks what may have been promised.
   */
  static async open(disk: RaftDisk, owner: LogOwner): Promise<RaftLog> {
    const current = await openFile(disk, LOG_FILE);
    try {
      if (current !== null && isOf(current.#content, owner)) {
        await disk.remove(NEXT_FILE).catch(() => {}); // A full disk may be in the way; it is made anew.
        return current;
      }
    } catch (error) {
      current?.close();
      throw error;
    }
    current?.close();
    const next = await openFile(disk, NEXT_FILE);
    if (next === null || !isOf(next.#content, owner)) {
      next?.close();
      throw new DamagedLog(current === null ? "it is missing" : "it is another member's");
    }
    await disk.rename(NEXT_FILE, LOG_FILE);
    return next;
  }

  /** Makes the log of a new owner, which takes the place of the one there is with `adopt`. */
  static async prepare(disk: RaftDisk, content: LogContent): Promise<RaftLog> {
    await disk.remove(NEXT_FILE);
    const file = await disk.open(NEXT_FILE, "make");
    if (file === null) throw unavailable(`${NEXT_FILE}: can't be made`);
    try {
      const log = new RaftLog(disk, file, content, 0, 0);
      log.#isAdopted = false;
      await log.#write(encodeRecord(content, content));
      return log;
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** Of a prepared log: it is the one from now on. */
  async adopt(): Promise<void> {
    await this.#disk.rename(NEXT_FILE, LOG_FILE);
    this.#isAdopted = true;
  }

  get content(): LogContent {
    return this.#content;
  }

  /**
   * Returns once it is durable.
   *
   * @throws If it could not be written; then it is as if it had not been asked for.
   */
  async append(record: LogRecord): Promise<void> {
    const content = after(this.#content, record);
    await this.#write(encodeRecord(null, { ...record, snapshot: record.snapshot ?? this.#owed }));
    this.#owed = null;
    this.#content = content;
  }

  /** `snapshot` holds as it is known from elsewhere; the next record brings it. */
  owe(snapshot: RaftSnapshot): void {
    this.#owed = snapshot;
    this.#content = { ...this.#content, snapshot, entries: [] };
  }

  /**
   * Puts `snapshot` in the place of the entries up to its index, and writes the file anew without
   * them.
   */
  async compact(snapshot: RaftSnapshot): Promise<void> {
    if (!this.#isAdopted) await this.adopt();
    const entries = this.#content.entries.filter(({ index }) => index > snapshot.index);
    const next = await RaftLog.prepare(this.#disk, { ...this.#content, snapshot, entries });
    try {
      await next.adopt();
    } catch (error) {
      next.close();
      throw error;
    }
    this.#file.close();
    this.#file = next.#file;
    [this.#content, this.#end, this.#length] = [next.#content, next.#end, next.#length];
    [this.#isUnclean, this.#owed] = [false, null];
  }

  close(): void {
    this.#file.close();
  }

  async #write(bytes: Uint8Array): Promise<void> {
    const end = this.#end + bytes.length;
    if (end > LOG_BYTES_MAX) throw unavailable(`${LOG_FILE}: has ${LOG_BYTES_MAX} bytes already`);
    try {
      if (this.#isUnclean) await this.#clean();
      if (end >= this.#length) {
        const length = (Math.floor(end / GROWTH_BYTES) + 1) * GROWTH_BYTES;
        await this.#file.truncate(length);
        this.#length = length;
      }
      await this.#file.write(this.#end, bytes);
      await this.#file.sync();
    } catch (error) {
      this.#isUnclean = true;
      throw error;
    }
    this.#end = end;
  }

  /** Zeros after the end, which need no room on the disk. */
  async #clean(): Promise<void> {
    await this.#file.truncate(this.#end);
    await this.#file.truncate(this.#length);
    this.#isUnclean = false;
  }

  /** @throws {DamagedLog} */
  static async over(disk: RaftDisk, file: RaftFile): Promise<RaftLog | null> {
    const length = await file.length();
    if (length > 2 * LOG_BYTES_MAX) throw new DamagedLog(`it has ${length} bytes`);
    const found = foundIn(await file.read(0, length));
    if (found === null) return null;
    const { content, end, isTorn } = found;
    const log = new RaftLog(disk, file, content, end, length);
    log.#isUnclean = isTorn;
    return log;
  }
}

function isOf(content: LogOwner, { id, generation }: LogOwner): boolean {
  return content.id === id && content.generation === generation;
}

/** `null`: there is none, or only the beginning of one that was never in use. */
async function openFile(disk: RaftDisk, name: string): Promise<RaftLog | null> {
  const file = await disk.open(name, "find");
  if (file === null) return null;
  try {
    const log = await RaftLog.over(disk, file);
    if (log === null) file.close();
    return log;
  } catch (error) {
    file.close();
    throw error;
  }
}

/** `content` with what a record adds. */
function after(content: LogContent, { hardState, snapshot, entries }: LogRecord): LogContent {
  let kept = snapshot === null ? content.entries : [];
  if (entries.length > 0) {
    const first = entries[0].index;
    const isNext = first === (kept.at(-1)?.index ?? NaN) + 1;
    kept = [...isNext ? kept : kept.filter(({ index }) => index < first), ...entries];
  }
  return {
    ...content,
    hardState: hardState ?? content.hardState,
    snapshot: snapshot ?? content.snapshot,
    entries: kept,
  };
}

function encodeRecord(owner: LogOwner | null, record: LogRecord): Uint8Array {
  const { hardState, snapshot, entries } = record;
  const hasSnapshot = snapshot !== null && snapshot.index > 0;
  const w = new WireWriter();
  w.u8(
    (owner === null ? 0 : Part.Owner) | (hardState === null ? 0 : Part.HardState) |
      (hasSnapshot ? Part.Snapshot : 0),
  );
  if (owner !== null) {
    w.u8(FORMAT);
    w.text(owner.id);
    w.u32(owner.generation);
  }
  if (hardState !== null) writeHardState(w, hardState);
  if (hasSnapshot) writeSnapshot(w, snapshot);
  writeEntries(w, entries);
  const payload = w.finish();
  const framed = new WireWriter();
  framed.u8(FIRST_MARK);
  framed.u32(payload.length);
  framed.u32(~payload.length >>> 0);
  framed.rest(payload);
  framed.u32(crc32(payload));
  framed.u8(LAST_MARK);
  return framed.finish();
}

/** @throws {DamagedLog} */
function foundIn(bytes: Uint8Array): Found | null {
  try {
    return readRecords(bytes);
  } catch (error) {
    throw error instanceof WireError ? new DamagedLog(messageOf(error), { cause: error }) : error;
  }
}

interface Found {
  readonly content: LogContent;
  readonly end: number;
  /** A record after the end was cut off by a crash. */
  readonly isTorn: boolean;
}

/**
 * Reads a file to its end; `null` where not even its first record was ever durable.
 *
 * @throws {DamagedLog}
 */
function readRecords(bytes: Uint8Array): Found | null {
  let content: LogContent | null = null;
  let at = 0;
  for (;;) {
    if (isZero(bytes, at, bytes.length)) break;
    const length = lengthAt(bytes, at);
    const end = at + HEAD_BYTES + length + TAIL_BYTES;
    const payload = length < 0 ? null : payloadAt(bytes, at, length);
    if (payload === null) {
      if (!isTorn(bytes, at, length < 0 ? -1 : end)) {
        throw new DamagedLog(`it is not what was written, from byte ${at} on`);
      }
      return content === null ? null : { content, end: at, isTorn: true };
    }
    content = decodeRecord(content, payload, at);
    at = end;
  }
  if (content === null) return null;
  const isWhole = bytes.length > at && bytes.length % GROWTH_BYTES === 0;
  if (!isWhole) throw new DamagedLog(`it was cut off at byte ${bytes.length}`);
  return { content, end: at, isTorn: false };
}

/** What the head of a record says, or -1 where there is no sound one. */
function lengthAt(bytes: Uint8Array, at: number): number {
  if (at + HEAD_BYTES > bytes.length || bytes[at] !== FIRST_MARK) return -1;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(at + 1);
  return (~length >>> 0) === view.getUint32(at + 5) ? length : -1;
}

function payloadAt(bytes: Uint8Array, at: number, length: number): Uint8Array | null {
  const start = at + HEAD_BYTES;
  const end = start + length;
  if (end + TAIL_BYTES > bytes.length || bytes[end + 4] !== LAST_MARK) return null;
  const payload = bytes.subarray(start, end);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return view.getUint32(end) === crc32(payload) ? payload : null;
}

/**
 * Whether what begins at `at` and would end at `end` (-1: its head is missing) is a record that a
 * crash cut off: the file has its length, a sector of the record was not written, and nothing follows.
 */
function isTorn(bytes: Uint8Array, at: number, end: number): boolean {
  if (bytes.length % GROWTH_BYTES !== 0 || end > bytes.length) return false;
  const next = (from: number) => (Math.floor(from / SECTOR_BYTES) + 1) * SECTOR_BYTES;
  if (end < 0) {
    const isSplit = at + HEAD_BYTES > next(at);
    return isZero(bytes, at, next(at)) || (isSplit && isZero(bytes, next(at), next(next(at))));
  }
  if (!isZero(bytes, end, bytes.length)) return false;
  for (let from = at; from < end; from = next(from)) {
    if (isZero(bytes, from, Math.min(next(from), end))) return true;
  }
  return false;
}

function isZero(bytes: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to && i < bytes.length; i++) if (bytes[i] !== 0) return false;
  return true;
}

function decodeRecord(content: LogContent | null, payload: Uint8Array, at: number): LogContent {
  const r = new WireReader(payload);
  const parts = r.u8();
  let before = content;
  if ((parts & Part.Owner) !== 0) {
    const format = r.u8();
    if (format !== FORMAT) throw new DamagedLog(`it is of format ${format}, not ${FORMAT}`);
    const { hardState, snapshot, entries } = NOTHING_PERSISTED;
    const id = r.text(OWNER_ID_BYTES_MAX);
    before = { id, generation: r.u32(), hardState, snapshot, entries };
  }
  if (before === null) throw new DamagedLog("its first record does not say whose it is");
  const hardState = (parts & Part.HardState) === 0 ? null : readHardState(r);
  const snapshot = (parts & Part.Snapshot) === 0 ? null : readSnapshot(r);
  const entries = readEntries(r, ENTRIES_MAX);
  r.end();
  const next = after(before, { hardState, snapshot, entries });
  const first = next.entries.at(0)?.index ?? next.snapshot.index + 1;
  if (first !== next.snapshot.index + 1 || first > INDEX_MAX) {
    throw new DamagedLog(`its entries do not follow one another, at byte ${at}`);
  }
  return next;
}
