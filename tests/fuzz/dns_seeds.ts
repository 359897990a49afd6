/**
 * Packets and vectors kept beside the checkout. Where they are absent, or may not be read, the
 * tests that need them are ignored, which is said once.
 */
import { gunzipSync } from "node:zlib";
import { decodeHex } from "../../src/bytes/mod.ts";

const VECTORS = new URL("../../../shared/vectors/", import.meta.url);

/** Reads a file of the vectors, or returns `null` where it is absent. */
function readVector(name: string): Uint8Array | null {
  const path = new URL(name, VECTORS);
  if (Deno.permissions.querySync({ name: "read", path }).state !== "granted") {
    console.warn(`may not read the vectors ${name}: tests that need them are ignored`);
    return null;
  }
  try {
    return Deno.readFileSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.warn(`the vectors ${name} are absent: tests that need them are ignored`);
    return null;
  }
}

/** A JSON file of the vectors as `T`, or `null` where it is absent. */
export function readJsonVector<T>(name: string): T | null {
  const bytes = readVector(name);
  return bytes === null ? null : JSON.parse(new TextDecoder().decode(bytes));
}

export interface SeedPacket {
  readonly name: string;
  readonly packet: Uint8Array;
}

function fromHex(name: string, hex: string): SeedPacket {
  const packet = decodeHex(hex);
  if (packet === null) throw new Error(`${name}: not hexadecimal`);
  return { name, packet };
}

/** The captured packets and the malformed ones; none where they are absent. */
export function readSeedPackets(): readonly SeedPacket[] {
  const zipped = readVector("packets.tsv.gz");
  const text = zipped === null ? "" : new TextDecoder().decode(gunzipSync(zipped));
  const seeds = text.split("\n").filter((line) => line !== "").map((line) => {
    const [name, hex] = line.split("\t");
    return fromHex(name, hex);
  });
  type Malformed = { readonly packets: readonly { readonly name: string; readonly hex: string }[] };
  const malformed = readJsonVector<Malformed>("malformed.json");
  return [...seeds, ...(malformed?.packets ?? []).map(({ name, hex }) => fromHex(name, hex))];
}
