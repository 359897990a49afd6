/** Puts signature checks in line for the threads that make them, so that nobody takes all of them. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { finishHash, hashLabel } from "../../dns/mod.ts";
import type { SignatureCheck } from "../../dnssec/mod.ts";
import { Counter, type CounterBlock } from "../../telemetry/mod.ts";
import { WeighedMap } from "./weighed_map.ts";

/** Checks that wait for a thread; over it the one goes whose client or zone has had the most. */
export const WAITING_MAX = 256;
/** Room for checks whose results are remembered: some thousand, those of late. */
export const REMEMBERED_BYTES_MAX = 2 * 1_024 * 1_024;
/** What one takes beside its own bytes. */
const REMEMBERED_BYTES_EACH = 200;
/** Places of the clients' and of the zones' use; who shares a place shares its turn. */
const PLACES = 1_024;
/** Use counts half as much after this time. */
const HALF_LIFE_MS = 500;
/** Where the signer's name stands in what a signature covers (RFC 4034 §3.1.8.1). */
export const SIGNER_OFFSET = 18;
/** Labels that zones of one hand have in common, more often than not. */
const HAND_LABELS = 2;
/** Longer keys are made shorter: theirs is a hash. */
const KEY_BYTES_MAX = 1_024;
/** What stands before the rest of a key: the algorithm, and two lengths. */
const KEY_HEAD_BYTES = 7;

/** The threads, as this isolate has them. */
export interface CheckThreads {
  /** Says whether one of them takes a check at this moment. */
  readonly hasRoom: boolean;
  /** Hands a check to one of them; `CheckQueue.onResult` is to follow, or `onLost`. */
  send(id: number, check: SignatureCheck): void;
}

export interface CheckQueueOptions {
  readonly threads: CheckThreads;
  readonly counters: CounterBlock;
  /** Milliseconds, monotonic. */
  readonly nowMs: () => number;
}

/** Somebody who wants to know. `client` is any number that tells clients apart. */
export interface CheckOwner {
  readonly client: number;
  /** Called as it begins to wait for a result, and once there is one: before its promise is settled. */
  onWaits?(isWaiting: boolean): void;
}

/** Said where there are too many checks, of whoever has had the most. */
export class ChecksRefused extends Error {}

interface Wanted {
  readonly owner: CheckOwner;
  readonly resolve: (fits: boolean) => void;
  readonly reject: (reason: ChecksRefused) => void;
}

/** One check and everybody who wants its result. */
interface Job {
  readonly id: number;
  readonly key: string;
  readonly check: SignatureCheck;
  readonly client: number;
  readonly zone: number;
  wanted: Wanted[];
}

/**
 * The line for the threads. Who is next is decided by what each client and each zone has had of late:
 * whoever has had less goes first, so that neither one client's questions nor one zone's signatures
 * (KeyTrap, CVE-2023-50387) keep others waiting. Results are remembered.
 */
export class CheckQueue {
  readonly #options: CheckQueueOptions;
  readonly #waiting: Job[] = [];
  /** Those with the threads, by number. */
  readonly #sent = new Map<number, Job>();
  /** Waiting and sent ones, by what is to be checked. */
  readonly #jobs = new Map<string, Job>();
  readonly #remembered = new WeighedMap<boolean>(REMEMBERED_BYTES_MAX);
  /** By client, and behind these by zone. */
  readonly #used = new Float64Array(2 * PLACES);
  #decayedAtMs = 0;
  #lastId = 0;

  constructor(options: CheckQueueOptions) {
    this.#options = options;
  }

  /** Checks that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves to whether a signature fits; rejects with `ChecksRefused`. */
  check(owner: CheckOwner, check: SignatureCheck): Promise<boolean> {
    const key = keyOf(check);
    const known = this.#remembered.get(key);
    if (known !== undefined) return Promise.resolve(known);
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    owner.onWaits?.(true);
    const wanted = { owner, resolve, reject };
    const same = this.#jobs.get(key);
    if (same !== undefined) {
      same.wanted.push(wanted);
      return promise;
    }
    const id = this.#lastId = this.#lastId + 1 >>> 0; // 32 bits go to a thread and back.
    const [client, zone] = [placeOf(owner.client), PLACES + placeOf(zoneOf(check.data))];
    const job: Job = { id, key, check, client, zone, wanted: [wanted] };
    this.#jobs.set(key, job);
    this.#waiting.push(job);
    this.#feed();
    if (this.#waiting.length > WAITING_MAX) this.#refuse();
    return promise;
  }

  /** Nothing is wanted any more by an owner; its promises stay as they are. */
  forget(owner: CheckOwner): void {
    for (const job of this.#jobs.values()) {
      if (job.wanted.every((wanted) => wanted.owner !== owner)) continue;
      job.wanted = job.wanted.filter((wanted) => wanted.owner !== owner);
      const at = job.wanted.length > 0 ? -1 : this.#waiting.indexOf(job);
      if (at < 0) continue;
      this.#waiting.splice(at, 1);
      this.#jobs.delete(job.key);
    }
  }

  /** A thread has a result. */
  onResult(id: number, fits: boolean): void {
    const job = this.#sent.get(id);
    if (job === undefined) return;
    this.#sent.delete(id);
    this.#jobs.delete(job.key);
    // It goes on to hold, whatever is flushed: the same bytes have the same result.
    this.#remembered.set(job.key, fits, job.key.length + REMEMBERED_BYTES_EACH);
    for (const { owner, resolve } of job.wanted) {
      owner.onWaits?.(false);
      resolve(fits);
    }
    this.#feed();
  }

  /** A thread is gone with what it had; another one has to do that. */
  onLost(ids: readonly number[]): void {
    for (const id of ids) {
      const job = this.#sent.get(id);
      if (job === undefined) continue;
      this.#sent.delete(id);
      if (job.wanted.length > 0) this.#waiting.push(job);
      else this.#jobs.delete(job.key);
    }
    this.#feed();
  }

  /** There may be room with a thread. */
  feed(): void {
    this.#feed();
  }

  #feed(): void {
    const { threads } = this.#options;
    while (this.#waiting.length > 0 && threads.hasRoom) {
      this.#decay();
      const job = this.#take((a, b) => a < b);
      this.#used[job.client]++;
      this.#used[job.zone]++;
      this.#sent.set(job.id, job);
      threads.send(job.id, job.check);
    }
  }

  /** Refuses the check of whoever has had the most, those that wait included. */
  #refuse(): void {
    this.#options.counters.values[Counter.ChecksRefused]++;
    this.#decay();
    for (const { client, zone } of this.#waiting) {
      this.#used[client]++;
      this.#used[zone]++;
    }
    const job = this.#take((a, b) => a >= b);
    for (const { client, zone } of [...this.#waiting, job]) {
      this.#used[client]--;
      this.#used[zone]--;
    }
    this.#jobs.delete(job.key);
    for (const { owner, reject } of job.wanted) {
      owner.onWaits?.(false);
      reject(new ChecksRefused());
    }
  }

  /** Takes the waiting one out whose use is before that of all others; there is one at least. */
  #take(isBefore: (use: number, best: number) => boolean): Job {
    const waiting = this.#waiting;
    let best = 0;
    let bestUse = this.#useOf(waiting[0]);
    for (let i = 1; i < waiting.length; i++) {
      const use = this.#useOf(waiting[i]);
      if (isBefore(use, bestUse)) [best, bestUse] = [i, use];
    }
    return waiting.splice(best, 1)[0];
  }

  #useOf({ client, zone }: Job): number {
    return Math.max(this.#used[client], this.#used[zone]);
  }

  #decay(): void {
    const nowMs = this.#options.nowMs();
    const halves = (nowMs - this.#decayedAtMs) / HALF_LIFE_MS;
    if (halves < 1) return;
    this.#decayedAtMs = nowMs;
    const factor = 2 ** -halves;
    for (let i = 0; i < this.#used.length; i++) this.#used[i] *= factor;
  }
}

let keyRoom = Buffer.alloc(4_096);

/**
 * What a check is known by: all of it, for a wrong result would be believed. A text, for those that are
 * remembered lie close together in the heap; pieces of memory of their own would each hold on to a page.
 */
function keyOf({ algorithm, publicKey, data, signature }: SignatureCheck): string {
  const dataAt = KEY_HEAD_BYTES + publicKey.length;
  const signatureAt = dataAt + data.length;
  const end = signatureAt + signature.length;
  if (end > keyRoom.length) keyRoom = Buffer.alloc(end);
  keyRoom[0] = algorithm;
  keyRoom.writeUIntBE(publicKey.length, 1, 3);
  keyRoom.writeUIntBE(data.length, 4, 3);
  keyRoom.set(publicKey, KEY_HEAD_BYTES);
  keyRoom.set(data, dataAt);
  keyRoom.set(signature, signatureAt);
  if (end <= KEY_BYTES_MAX) return keyRoom.toString("latin1", 0, end);
  return createHash("sha256").update(keyRoom.subarray(0, end)).digest("base64");
}

function placeOf(number: number): number {
  return finishHash(number) & (PLACES - 1);
}

/** A number for the zone that has signed, the same for all of one hand. */
function zoneOf(data: Uint8Array): number {
  const labels: number[] = [];
  for (let at = SIGNER_OFFSET; at < data.length && data[at] !== 0; at += 1 + data[at]) {
    labels.push(at);
  }
  let hash = 0;
  for (const at of labels.slice(-HAND_LABELS).reverse()) hash = hashLabel(hash, data, at);
  return hash;
}
