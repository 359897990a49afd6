import assert from "node:assert/strict";
import { decodeHex, encodeHex } from "../bytes/mod.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import {
  countLabels,
  equalNames,
  expandName,
  formatName,
  HEADER_BYTES,
  isAtOrBelow,
  parseName,
  readNameText,
  skipName,
  skipPlainName,
} from "./mod.ts";

const none = { permissions: "none" } as const;

function bytes(hex: string): Uint8Array {
  const decoded = decodeHex(hex.replaceAll(" ", ""));
  assert.notEqual(decoded, null, hex);
  return decoded ?? new Uint8Array(0);
}

/** A packet with zeros for a header, for names start behind it. */
function packet(hex: string): Uint8Array {
  return bytes("00".repeat(HEADER_BYTES) + hex);
}

const LABEL_63 = "3f" + "61".repeat(63);

Deno.test("skipName() ends behind the root or a pointer", none, () => {
  const rows: [hex: string, skip: number, plain: number, what: string][] = [
    ["00", 1, 1, "root"],
    ["01 61 00", 3, 3, "a"],
    ["01 61 02 62 63 00 ff", 6, 6, "a.bc, and more behind it"],
    ["c0 0c", 2, -1, "pointer alone"],
    ["01 61 c0 0c", 4, -1, "a and a pointer"],
    ["ff ff", 2, -1, "pointer to anywhere: not looked at"],
    ["", -1, -1, "nothing"],
    ["01 61", -1, -1, "no root"],
    ["03 61", -1, -1, "label cut off"],
    ["c0", -1, -1, "pointer cut off"],
    ["01 61 c0", -1, -1, "pointer cut off behind a label"],
    ["41 61 00", -1, -1, "label type 01"],
    ["81 61 00", -1, -1, "label type 10"],
    ["40 00", -1, -1, "label of 64 bytes"],
    [LABEL_63 + "00", 65, 65, "label of 63 bytes"],
    [LABEL_63.repeat(3) + "3d" + "61".repeat(61) + "00", 255, 255, "name of 255 bytes"],
    [LABEL_63.repeat(3) + "3e" + "61".repeat(62) + "00", -1, -1, "name of 256 bytes"],
    ["0161".repeat(127) + "00", 255, 255, "127 labels"],
    ["0161".repeat(128) + "00", -1, -1, "128 labels"],
  ];
  for (const [hex, skip, plain, what] of rows) {
    const wire = bytes(hex);
    assert.equal(skipName(wire, 0), skip, what);
    assert.equal(skipPlainName(wire, 0), plain, what);
  }
});

Deno.test("skipName() and expandName() stop at the given end", none, () => {
  const wire = packet("01 61 01 62 00");
  const target = new Uint8Array(255);
  assert.equal(skipName(wire, 12, 17), 17);
  assert.equal(expandName(wire, 12, target, 0, 17), 5);
  for (let end = 12; end < 17; end++) {
    assert.equal(skipName(wire, 12, end), -1);
    assert.equal(skipPlainName(wire, 12, end), -1);
    assert.equal(expandName(wire, 12, target, 0, end), -1);
  }
});

Deno.test("expandName() follows pointers backwards only", none, () => {
  const rows: [hex: string, offset: number, want: string | null, what: string][] = [
    ["01 61 00", 12, "a", "no pointer"],
    ["01 61 00 c0 0c", 15, "a", "pointer alone"],
    ["01 61 00 01 62 c0 0c", 15, "b.a", "label and pointer"],
    ["01 61 00 01 62 c0 0c 01 63 c0 0f", 19, "c.b.a", "pointer to a pointer"],
    ["00 c0 0c", 13, ".", "pointer to the root"],
    ["c0 0c", 12, null, "pointer to itself"],
    ["c0 0e c0 0c", 12, null, "two pointers at each other, from the first"],
    ["c0 0e c0 0c", 14, null, "two pointers at each other, from the second"],
    ["01 61 c0 0c", 12, null, "pointer to the label it follows"],
    ["01 61 c0 0e", 12, null, "pointer to itself behind a label"],
    ["c0 0e 01 61 00", 12, null, "pointer forward"],
    ["ff ff", 12, null, "pointer past the end"],
    ["c0 00", 12, null, "pointer into the header"],
    ["c0 0b", 12, null, "pointer to the header's last byte"],
    ["01 61", 12, null, "cut off"],
    ["03 61", 12, null, "label cut off"],
    ["01 61 00 c0", 15, null, "pointer cut off"],
    ["41 61 00", 12, null, "label type 01"],
    ["01 61 00", 15, null, "nothing there"],
  ];
  for (const [hex, offset, want, what] of rows) {
    assert.equal(readNameText(packet(hex), offset), want, what);
  }
});

Deno.test("expandName() takes 126 pointers and 255 bytes, and no more", none, () => {
  const target = new Uint8Array(300);
  // `a`, then names of nothing but a pointer to the one before.
  const chain = (pointers: number) => {
    let hex = "016100";
    let to = 12;
    for (let i = 0; i < pointers; i++) {
      hex += (0xc000 | to).toString(16);
      to = 15 + 2 * i;
    }
    return expandName(packet(hex), to, target, 0);
  };
  assert.equal(chain(126), 3);
  assert.equal(chain(127), -1);
  // 254 bytes and the root behind a pointer; then one byte more.
  const long = (last: number) =>
    packet("00" + LABEL_63.repeat(3) + last.toString(16) + "61".repeat(last) + "c00c");
  assert.equal(expandName(long(61), 13, target, 0), 255);
  assert.equal(expandName(long(62), 13, target, 0), -1);
});

Deno.test("expandName() writes at its place and not past the target", none, () => {
  const target = new Uint8Array(8);
  assert.equal(expandName(packet("02 61 62 00"), 12, target, 3), 4);
  assert.equal(encodeHex(target), "0000000261620000");
  assert.equal(expandName(packet("02 61 62 00"), 12, target, 4), 4);
  assert.equal(expandName(packet("02 61 62 00"), 12, target, 5), -1);
});

Deno.test("equalNames() folds ASCII letters and nothing else", none, () => {
  const rows: [string, string, boolean][] = [
    [".", ".", true],
    ["www.example", "WWW.eXample", true],
    ["www.example", "www.example.com", false],
    ["www.example", ".", false],
    ["ab.c", "a.bc", false],
    ["a@b", "a`b", false],
    ["[", "{", false],
    ["\\228", "\\196", false], // Latin-1 ä and Ä.
  ];
  for (const [a, b, want] of rows) {
    const [left, right] = [parseName(a), parseName(b)];
    assert(left !== null && right !== null);
    assert.equal(equalNames(left, 0, right, 0), want, `${a} ${b}`);
    assert.equal(equalNames(right, 0, left, 0), want, `${b} ${a}`);
  }
  // Broken names equal none, not even themselves.
  for (const hex of ["", "0161", "c00c", "0361", "40"]) {
    assert.equal(equalNames(bytes(hex), 0, bytes(hex), 0), false, hex);
  }
});

Deno.test("isAtOrBelow() and countLabels() look at whole labels", none, () => {
  const rows: [name: string, zone: string, want: boolean][] = [
    ["example", "example", true],
    ["www.Example", "eXample", true],
    ["a.b.example", "example", true],
    ["example", ".", true],
    [".", ".", true],
    [".", "example", false],
    ["example", "www.example", false],
    ["badexample", "example", false],
    ["www.example", "example.www", false],
  ];
  for (const [name, zone, want] of rows) {
    const [a, b] = [parseName(name), parseName(zone)];
    assert(a !== null && b !== null);
    assert.equal(isAtOrBelow(a, 0, b, 0), want, `${name} below ${zone}`);
  }
  // A length byte that looks like a label is none: "\007example" is one label.
  const [odd, zone] = [parseName("x\\007example"), parseName("example")];
  assert(odd !== null && zone !== null);
  assert.equal(isAtOrBelow(odd, 0, zone, 0), false);
  assert.equal(countLabels(bytes("016101620163 00"), 0), 3);
  assert.equal(countLabels(bytes("00"), 0), 0);
  for (const hex of ["", "0161", "c00c", "0161c00c"]) assert.equal(countLabels(bytes(hex), 0), -1);
  assert.equal(isAtOrBelow(bytes("c00c"), 0, bytes("00"), 0), false);
  assert.equal(isAtOrBelow(bytes("00"), 0, bytes("c00c"), 0), false);
});

Deno.test("formatName() escapes and parseName() reads it again", none, () => {
  const rows: [hex: string, text: string][] = [
    ["00", "."],
    ["03777777076578616d706c6500", "www.example"],
    ["0357575707456558616d706c00", "WWW.EeXampl"],
    ["0b7777772e6578616d706c6500", "www\\.example"],
    ["015c00", "\\\\"],
    ["0100 00", "\\000"],
    ["03 61 20 62 00", "a\\032b"],
    ["02 7f ff 00", "\\127\\255"],
    ["07 22 28 29 3b 40 24 2a 00", '\\"\\(\\)\\;\\@\\$*'],
    ["02 c3 a4 00", "\\195\\164"],
  ];
  for (const [hex, text] of rows) {
    const wire = bytes(hex);
    assert.equal(formatName(wire), text);
    assert.deepEqual(parseName(text), wire, text);
    if (text !== ".") assert.deepEqual(parseName(`${text}.`), wire, `${text}.`);
  }
});

Deno.test("formatName() ends where a broken name does", none, () => {
  const rows = [["", ""], ["0161c00c", "a"], ["0361", "a"], ["40", ""]];
  for (const [hex, want] of rows) assert.equal(formatName(bytes(hex)), want, hex);
  // A root that never comes: 127 labels, and the length byte of one more.
  assert.equal(formatName(bytes("0161".repeat(200))), "a.".repeat(127));
});

Deno.test("parseName() refuses what is no name", none, () => {
  const label = "a".repeat(63);
  const rows = [
    "",
    "..",
    ".a",
    "a..b",
    "a..",
    "a b",
    "a\tb",
    "ä.example",
    "a\\",
    "a\\1",
    "a\\12",
    "a\\12x",
    "a\\256",
    "a\\999",
    "a\\ä",
    `${label}a`,
    `${label}.${label}.${label}.${"a".repeat(62)}`,
    Array(128).fill("a").join("."),
  ];
  for (const text of rows) assert.equal(parseName(text), null, text);
  assert.equal(parseName(`${label}.${label}.${label}.${"a".repeat(61)}`)?.length, 255);
  assert.equal(parseName(`${label}.${label}.${label}.${"a".repeat(61)}.`)?.length, 255);
  assert.equal(parseName(Array(127).fill("a").join("."))?.length, 255);
  assert.equal(parseName("\\001".repeat(63))?.length, 65);
});

const NAMES = 20_000;
const seed = seedFromEnv();

Deno.test(`formatName() and parseName() agree on names of any bytes, seed ${seed}`, none, () => {
  const prng = new Prng(seed);
  for (let i = 0; i < NAMES; i++) {
    const wire = new Uint8Array(255);
    let at = 0;
    for (let labels = prng.int(8); labels > 0; labels--) {
      const length = 1 + prng.int(prng.chance(0.1) ? 63 : 12);
      if (at + 1 + length > 254) break;
      wire[at] = length;
      wire.set(prng.bytes(length), at + 1);
      at += 1 + length;
    }
    const name = wire.slice(0, at + 1);
    assert.deepEqual(parseName(formatName(name)), name);
    assert.equal(skipPlainName(name, 0), name.length);
  }
});
