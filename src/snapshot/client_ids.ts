import { finishHash, FOLD } from "../dns/mod.ts";

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
const SLOTS_PER_ID = 2;
const SLOTS_MIN = 4;
const PRIME = 0x01000193;

/** `ids[i]` are those of client `i`. Of two clients with one ID the first has it. */
export function compileClientIds(ids: readonly (readonly string[])[]): ClientIdsData {
  const all = ids.flatMap((own, client) => own.map((id) => ({ id, client })));
  const slots = 2 ** Math.ceil(Math.log2(Math.max(SLOTS_MIN, SLOTS_PER_ID * all.length)));
  const idSlots = new Int32Array(slots * SLOT_WORDS);
  const idBytes = new TextEncoder().encode(
    all.map(({ id }) => String.fromCharCode(id.length) + id).join(""),
  );
  let offset = 0;
  for (const { id, client } of all) {
    const hash = hashOf(idBytes, offset + 1, id.length);
    let slot = (hash & (slots - 1)) * SLOT_WORDS;
    while (idSlots[slot + 2] !== 0) slot = (slot + SLOT_WORDS) % idSlots.length;
    idSlots[slot] = hash;
    idSlots[slot + 1] = offset;
    idSlots[slot + 2] = client + 1;
    offset += 1 + id.length;
  }
  return { idSlots, idBytes };
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
