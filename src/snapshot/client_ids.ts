import { finishHash, FOLD } from "../dns/mod.ts";
import { isWasteful } from "./shared.ts";

/** Client IDs by hash: open addressing, a power of two of slots. */
export interface ClientIdsData {
  /** Three words a slot: hash, where the ID's length byte stands, its client plus one; 0 is free. */
  readonly idSlots: Int32Array;
  /** IDs, each behind its length. */
  readonly idBytes: Uint8Array;
}

/** The ID is of no client. */
export const NO_CLIENT = -1;

const SLOT_WORDS = 3;
const SLOTS_PER_ID = 1.5;
const SLOTS_MIN = 4;
const BYTES_MIN = 64;
const PRIME = 0x01000193;

const encoder = new TextEncoder();

/** `ids[i]` are those of client `i`. Of two clients with one ID the first has it. */
export function compileClientIds(ids: readonly (readonly string[])[]): ClientIdsData {
  const set = new ClientIdSet();
  for (const [client, own] of ids.entries()) for (const id of own) set.add(id, client);
  return set.data;
}

/** The table while IDs come and go. An ID is of the client that had it first. */
export class ClientIdSet {
  #slots = new Int32Array(SLOTS_MIN * SLOT_WORDS);
  #bytes = new Uint8Array(BYTES_MIN);
  #endBytes = 0;
  #usedBytes = 0;
  #count = 0;

  /** Good until the next change. */
  get data(): ClientIdsData {
    return { idSlots: this.#slots, idBytes: this.#bytes.subarray(0, this.#endBytes) };
  }

  get isWasteful(): boolean {
    return isWasteful(this.#endBytes, this.#usedBytes);
  }

  add(id: string, client: number): void {
    const text = encoder.encode(id);
    if (this.#find(text, null) >= 0) return;
    if (SLOTS_PER_ID * ++this.#count * SLOT_WORDS > this.#slots.length) this.#grow();
    if (this.#endBytes + 1 + text.length > this.#bytes.length) {
      const larger = new Uint8Array(2 * (this.#bytes.length + text.length));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    const offset = this.#endBytes;
    this.#bytes[offset] = text.length;
    this.#bytes.set(text, offset + 1);
    this.#endBytes += 1 + text.length;
    this.#usedBytes += 1 + text.length;
    this.#put(hashOf(text, 0, text.length), offset, client + 1);
  }

  /** Takes out an ID if it is this client's. Its bytes stay where they are, unused. */
  delete(id: string, client: number): void {
    const slots = this.#slots;
    const text = encoder.encode(id);
    let free = this.#find(text, client);
    if (free < 0) return;
    this.#count--;
    this.#usedBytes -= 1 + text.length;
    // Whoever stands behind because its place was taken moves up, or no search would find it.
    for (let slot = this.#after(free); slots[slot + 2] !== 0; slot = this.#after(slot)) {
      const home = this.#home(slots[slot]);
      const isBetween = free <= slot ? free < home && home <= slot : free < home || home <= slot;
      if (isBetween) continue;
      slots.copyWithin(free, slot, slot + SLOT_WORDS);
      free = slot;
    }
    slots.fill(0, free, free + SLOT_WORDS);
  }

  /** The slot of an ID, of this client if one is named, or -1. */
  #find(id: Uint8Array, client: number | null): number {
    const [slots, bytes] = [this.#slots, this.#bytes];
    const hash = hashOf(id, 0, id.length);
    for (let slot = this.#home(hash); slots[slot + 2] !== 0; slot = this.#after(slot)) {
      const at = slots[slot + 1];
      if (slots[slot] !== hash || bytes[at] !== id.length) continue;
      if (!id.every((byte, i) => bytes[at + 1 + i] === byte)) continue;
      return client === null || slots[slot + 2] === client + 1 ? slot : -1;
    }
    return -1;
  }

  #home(hash: number): number {
    return (hash & (this.#slots.length / SLOT_WORDS - 1)) * SLOT_WORDS;
  }

  #after(slot: number): number {
    return (slot + SLOT_WORDS) % this.#slots.length;
  }

  #put(hash: number, offset: number, value: number): void {
    let slot = this.#home(hash);
    while (this.#slots[slot + 2] !== 0) slot = this.#after(slot);
    this.#slots.set([hash, offset, value], slot);
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Int32Array(2 * old.length);
    for (let slot = 0; slot < old.length; slot += SLOT_WORDS) {
      if (old[slot + 2] !== 0) this.#put(old[slot], old[slot + 1], old[slot + 2]);
    }
  }
}

function hashOf(bytes: Uint8Array, offset: number, lengthBytes: number): number {
  let hash = PRIME;
  for (let i = 0; i < lengthBytes; i++) hash = Math.imul(hash ^ FOLD[bytes[offset + i]], PRIME);
  return finishHash(hash);
}

/** Says which client an ID is of. Leaves no garbage. */
export class ClientIds {
  constructor(private readonly data: ClientIdsData) {}

  /** The client with the ID at `offset`, in any case (it may be a label of a name), or `NO_CLIENT`. */
  find(bytes: Uint8Array, offset: number, lengthBytes: number): number {
    const { idSlots, idBytes } = this.data;
    const hash = hashOf(bytes, offset, lengthBytes);
    let slot = (hash & (idSlots.length / SLOT_WORDS - 1)) * SLOT_WORDS;
    for (; idSlots[slot + 2] !== 0; slot = (slot + SLOT_WORDS) % idSlots.length) {
      const at = idSlots[slot + 1];
      if (idSlots[slot] !== hash || idBytes[at] !== lengthBytes) continue;
      let same = 0;
      while (same < lengthBytes && idBytes[at + 1 + same] === FOLD[bytes[offset + same]]) same++;
      if (same === lengthBytes) return idSlots[slot + 2] - 1;
    }
    return NO_CLIENT;
  }
}
