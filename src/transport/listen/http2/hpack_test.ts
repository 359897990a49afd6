import assert from "node:assert/strict";
import { decodeHex, encodeHex } from "../../../bytes/mod.ts";
import { Prng, seedFromEnv } from "../../../../tests/prng.ts";
import { BLOCK_BYTES_MAX, type FieldSink, type HeaderField, Hpack, HpackDecoder } from "./hpack.ts";
import { huffman, readHuffman } from "./huffman.ts";

const none = { permissions: "none" } as const;

/** Notes fields as text. */
class Fields implements FieldSink {
  readonly lines: string[] = [];

  onField(field: HeaderField): void {
    const text = (bytes: Uint8Array, start: number, end: number) =>
      String.fromCharCode(...bytes.subarray(start, end));
    const name = text(field.nameBytes, field.nameStart, field.nameEnd);
    const value = text(field.value, field.valueStart, field.valueEnd);
    this.lines.push(`${name}: ${value}${field.valid ? "" : " (invalid)"}`);
  }
}

function bytesOf(hex: string): Uint8Array {
  return decodeHex(hex.replaceAll(/\s/g, ""))!;
}

function read(decoder: HpackDecoder, hex: string): string[] {
  const bytes = bytesOf(hex);
  const fields = new Fields();
  // Somewhere in a larger buffer, whose other bytes are not looked at.
  const around = new Uint8Array(bytes.length + 6).fill(0xff);
  around.set(bytes, 3);
  const outcome = decoder.read(around, 3, 3 + bytes.length, fields);
  return outcome === Hpack.Ok ? fields.lines : ["malformed"];
}

const REQUEST_1 = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const REQUEST_2 = [...REQUEST_1, "cache-control: no-cache"];
const REQUEST_3 = [
  ":method: GET",
  ":scheme: https",
  ":path: /index.html",
  ":authority: www.example.com",
  "custom-key: custom-value",
];
const DATE_1 = "date: Mon, 21 Oct 2013 20:13:21 GMT";
const DATE_2 = "date: Mon, 21 Oct 2013 20:13:22 GMT";
const LOCATION = "location: https://www.example.com";

/** Blocks of one connection each, with the fields and the size of the table after each. */
const EXAMPLES: readonly (readonly [string, readonly (readonly [string, string[], number])[]])[] = [
  ["C.2.1 literal with indexing", [[
    "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
    ["custom-key: custom-header"],
    55,
  ]]],
  ["C.2.2 literal without indexing", [[
    "040c 2f73 616d 706c 652f 7061 7468",
    [":path: /sample/path"],
    0,
  ]]],
  ["C.2.3 literal never indexed", [[
    "1008 7061 7373 776f 7264 0673 6563 7265 74",
    ["password: secret"],
    0,
  ]]],
  ["C.2.4 indexed", [["82", [":method: GET"], 0]]],
  ["C.3 requests without Huffman", [
    ["8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", REQUEST_1, 57],
    ["8286 84be 5808 6e6f 2d63 6163 6865", REQUEST_2, 110],
    [
      "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
      REQUEST_3,
      164,
    ],
  ]],
  ["C.4 requests with Huffman", [
    ["8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", REQUEST_1, 57],
    ["8286 84be 5886 a8eb 1064 9cbf", REQUEST_2, 110],
    ["8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", REQUEST_3, 164],
  ]],
];

Deno.test("HpackDecoder reads the examples of RFC 7541 Appendix C", none, async (t) => {
  for (const [name, blocks] of EXAMPLES) {
    await t.step(name, () => {
      const decoder = new HpackDecoder();
      for (const [hex, want, bytes] of blocks) {
        assert.deepEqual(read(decoder, hex), want);
        assert.equal(decoder.tableSize.bytes, bytes);
      }
    });
  }
});

Deno.test("HpackDecoder evicts as RFC 7541 C.5 and C.6 do in a table of 256 bytes", none, () => {
  const responses = [
    [
      "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133" +
      "2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70" +
      "6c65 2e63 6f6d",
      "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6" +
      "2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
      [":status: 302", "cache-control: private", DATE_1, LOCATION],
      222,
    ],
    [
      "4803 3330 37c1 c0bf",
      "4883 640e ffc1 c0bf",
      [":status: 307", "cache-control: private", DATE_1, LOCATION],
      222,
    ],
    [
      "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d" +
      "54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049" +
      "5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e" +
      "3d31",
      "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab" +
      "77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f" +
      "9587 3160 65c0 03ed 4ee5 b106 3d50 07",
      [
        ":status: 200",
        "cache-control: private",
        DATE_2,
        LOCATION,
        "content-encoding: gzip",
        "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
      ],
      215,
    ],
  ] as const;
  for (const form of [0, 1] as const) {
    const decoder = new HpackDecoder();
    assert.deepEqual(read(decoder, "3fe101"), []); // The table is 256 bytes from here on.
    for (const response of responses) {
      assert.deepEqual(read(decoder, response[form]), response[2]);
      assert.equal(decoder.tableSize.bytes, response[3]);
    }
  }
});

const MALFORMED: readonly (readonly [string, string])[] = [
  ["index 0", "80"],
  ["an index behind both tables", "be"],
  ["a name behind both tables", "7f 0a 01 61"],
  ["an integer that does not end", "ff 80 80 80 80 80 80 00"],
  ["an integer that is cut off", "ff"],
  ["a string longer than the block", "40 05 61"],
  ["a name without a value", "40 01 61"],
  ["a table larger than allowed", "3f e2 1f"],
  ["a size of the table behind a field", "82 20"],
  ["Huffman: padding of zeros", "40 81 00 01 61"],
  ["Huffman: a byte of padding", "40 82 1f ff 01 61"],
  ["Huffman: EOS", "40 84 ff ff ff ff 01 61"],
];

Deno.test("HpackDecoder refuses what is malformed", none, async (t) => {
  for (const [name, hex] of MALFORMED) {
    await t.step(name, () => assert.deepEqual(read(new HpackDecoder(), hex), ["malformed"]));
  }
});

Deno.test("HpackDecoder marks fields that HTTP/2 does not allow", none, () => {
  const literal = (name: string, value: string) =>
    "00" +
    [name, value].map((text) =>
      encodeHex(Uint8Array.of(text.length)) + encodeHex(new TextEncoder().encode(text))
    ).join("");
  const check = (name: string, value: string) =>
    read(new HpackDecoder(), literal(name, value))[0].endsWith(" (invalid)");
  const bad = [["Upper", "a"], ["a b", "a"], ["a:b", "a"], ["", "a"], ["a\x7f", "a"]];
  const badValues = [["a", "b\r\nc"], ["a", "b\0"], ["a", " b"], ["a", "b\t"]];
  for (const [name, value] of [...bad, ...badValues]) assert.ok(check(name, value), name + value);
  for (const [name, value] of [["a-b_c", "x y"], ["a", ""], [":path", "/"]]) {
    assert.ok(!check(name, value), name);
  }
});

Deno.test("HpackDecoder keeps a bad field's name for later, and its badness with it", none, () => {
  const decoder = new HpackDecoder();
  assert.deepEqual(read(decoder, "40 01 61 02 0d0a"), ["a: \r\n (invalid)"]);
  assert.deepEqual(read(decoder, "be"), ["a: \r\n (invalid)"]);
  assert.deepEqual(read(decoder, "7e 01 62"), ["a: b"]);
});

Deno.test("HpackDecoder empties its table for an entry that is too large", none, () => {
  const decoder = new HpackDecoder();
  read(decoder, "40 01 61 01 62");
  assert.deepEqual(decoder.tableSize, { entries: 1, bytes: 34 });
  const long = "40 01 61 7f e1 1f" + "62".repeat(4_192);
  assert.deepEqual(read(decoder, long), ["a: " + "b".repeat(4_192)]);
  assert.deepEqual(decoder.tableSize, { entries: 0, bytes: 0 });
  for (let i = 0; i < 500; i++) read(decoder, "40 01 61 00");
  assert.deepEqual(decoder.tableSize, { entries: 124, bytes: 124 * 33 });
  assert.deepEqual(read(decoder, "20"), []);
  assert.deepEqual(decoder.tableSize, { entries: 0, bytes: 0 });
});

Deno.test("huffman() and readHuffman() are each other's inverse", none, () => {
  const all = String.fromCharCode(...Array.from({ length: 256 }, (_, i) => i));
  for (const text of ["", "a", "www.example.com", "302", all]) {
    const bytes = huffman(text);
    const target = new Uint8Array(text.length);
    assert.equal(readHuffman(bytes, 0, bytes.length, target, 0), text.length);
    assert.equal(String.fromCharCode(...target), text);
    if (text.length > 0) {
      assert.equal(readHuffman(bytes, 0, bytes.length, target.subarray(1), 0), -1);
    }
  }
  assert.equal(encodeHex(huffman("www.example.com")), "f1e3c2e5f23a6ba0ab90f4ff");
});

Deno.test("HpackDecoder takes any bytes without harm", none, () => {
  const prng = new Prng(seedFromEnv());
  const seeds = EXAMPLES.flatMap(([, blocks]) => blocks.map(([hex]) => bytesOf(hex)));
  for (let i = 0; i < 3_000; i++) {
    const decoder = new HpackDecoder();
    for (let j = 0; j < 5; j++) {
      const block = prng.chance(0.5) ? prng.bytes(prng.int(64)) : prng.pick(seeds).slice();
      for (let k = prng.int(4); k > 0 && block.length > 0; k--) {
        block[prng.int(block.length)] = prng.next();
      }
      const fields = new Fields();
      if (decoder.read(block, 0, block.length, fields) !== Hpack.Ok) break;
      const { entries, bytes } = decoder.tableSize;
      assert.ok(bytes <= 4_096 && entries <= 128 && (entries === 0) === (bytes === 0));
    }
  }
  // Few bits for many bytes: as long as a block may be.
  const zeros = new Uint8Array(BLOCK_BYTES_MAX);
  const length = BLOCK_BYTES_MAX - 7;
  zeros.set([0x00, 0x01, 0x61, 0xff, (length - 127) & 127 | 128, (length - 127) >> 7 | 128, 0]);
  zeros[6] = (length - 127) >> 14;
  zeros[zeros.length - 1] = 1; // One bit of padding.
  const fields = new Fields();
  assert.equal(new HpackDecoder().read(zeros, 0, zeros.length, fields), Hpack.Ok);
  assert.equal(fields.lines[0].length, 3 + Math.floor(length * 8 / 5));
});
