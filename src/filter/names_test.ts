import assert from "node:assert/strict";
import { question, wireName } from "../../tests/filter_reference.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { nameEnd, NameReader, nameText, normaliseName } from "./names.ts";

const ROUNDS = 20_000;
/** Letters that names are made of here, with some that belong in none. */
const LETTERS = "abCxyz019-_..";
const STRANGE = "^ *\0#";

function randomText(prng: Prng): string {
  const length = prng.int(prng.chance(0.02) ? 270 : 24);
  let text = "";
  for (let i = 0; i < length; i++) {
    const long = text.length > 60 && prng.chance(0.7);
    text += prng.chance(0.005) ? prng.pick(STRANGE) : long ? "a" : prng.pick(LETTERS);
  }
  return text;
}

Deno.test("NameReader reads the names that normaliseName() takes", { permissions: "none" }, () => {
  const prng = new Prng(seedFromEnv());
  const reader = new NameReader();
  let names = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const text = randomText(prng);
    const bytes = new TextEncoder().encode(text);
    const end = reader.read(bytes, 0, bytes.length);
    const name = normaliseName(text);
    const message = `${JSON.stringify(text)}, seed ${prng.seed}`;
    if (name === null || text.endsWith(".")) {
      // The dot at the end is left to normaliseName().
      assert.notEqual(end, bytes.length, message);
      continue;
    }
    names++;
    assert.equal(end, bytes.length, message);
    assert.deepEqual(reader.wire.slice(0, reader.lengthBytes), wireName(name), message);
    assert.equal(nameText(reader.wire, 0), name, message);
    assert.equal(reader.folded, name !== text, message);
    assert.equal(nameEnd(reader.wire, 0), reader.lengthBytes, message);
    const seed = prng.next();
    assert.equal(reader.hash(seed), question(text, seed).hashed.hashes[0], message);
    assert.equal(reader.hash(seed), question(text.toUpperCase(), seed).hashed.hashes[0], message);
  }
  assert(names > ROUNDS / 20, `only ${names} names were made`);
});

Deno.test("NameReader stops before what is of no name", { permissions: "none" }, () => {
  const rows: [text: string, end: number, name: string][] = [
    ["ads.example^$important", 11, "ads.example"],
    ["ads.example\r\n", 11, "ads.example"],
    ["ads", 3, "ads"],
  ];
  const reader = new NameReader();
  for (const [text, end, name] of rows) {
    const bytes = new TextEncoder().encode(text);
    assert.equal(reader.read(bytes, 0, bytes.length), end, text);
    assert.equal(nameText(reader.wire, 0), name, text);
  }
});
