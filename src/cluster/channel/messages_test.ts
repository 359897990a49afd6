import assert from "node:assert/strict";
import { FRAME_BYTES_MAX } from "../ports.ts";
import { MESSAGE_BYTES_MAX, MessageReader, MessageType, writeMessage } from "./messages.ts";

const alone = { permissions: "none" } as const;
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (value: string) => new TextEncoder().encode(value);

/** Reads chunks; what came of it, in words. */
function read(chunks: readonly Uint8Array[], takes = (_: number) => true): string[] {
  const found: string[] = [];
  const reader = new MessageReader(takes, (type, payload) => {
    found.push(`${type} ${text(payload)}`);
    return text(payload) !== "enough";
  });
  for (const chunk of chunks) {
    if (!reader.read(chunk)) return [...found, "end"];
  }
  return reader.isInMessage ? [...found, "more"] : found;
}

Deno.test("MessageReader reads messages however they are cut", alone, () => {
  const stream = new Uint8Array([
    ...writeMessage(MessageType.Frame, bytes("one")),
    ...writeMessage(MessageType.Ping, bytes("")),
    ...writeMessage(MessageType.Frame, bytes("three")),
  ]);
  const want = ["3 one", "4 ", "3 three"];
  for (let size = 1; size <= stream.length; size++) {
    const chunks: Uint8Array[] = [];
    for (let i = 0; i < stream.length; i += size) chunks.push(stream.slice(i, i + size));
    assert.deepEqual(read(chunks), want, `in pieces of ${size}`);
  }
  assert.deepEqual(read([stream.subarray(0, stream.length - 1)]), [...want.slice(0, 2), "more"]);
});

Deno.test("MessageReader ends a stream that is none of ours", alone, async (t) => {
  const header = (length: number, type: number) =>
    new Uint8Array([length >>> 24, length >>> 16, length >>> 8, length, type]);
  const rows: readonly (readonly [string, Uint8Array])[] = [
    ["HTTP", bytes("GET / HTTP/1.1\r\n\r\n")],
    ["a type that is not known", header(0, 0)],
    ["a frame that is too long", header(FRAME_BYTES_MAX + 1, MessageType.Frame)],
    ["a greeting that is too long", header(4_096, MessageType.Greeting)],
    ["a ping with a load", header(1, MessageType.Ping)],
    ["a length of 32 bits", header(0xffff_ffff, MessageType.Frame)],
  ];
  for (const [what, chunk] of rows) {
    await t.step(what, () => {
      assert.deepEqual(read([chunk]), ["end"]);
      assert.deepEqual(read(Array.from(chunk, (byte) => new Uint8Array([byte]))), ["end"]);
    });
  }
  await t.step("a type that is not taken now", () => {
    assert.deepEqual(read([header(3, MessageType.Frame)], (type) => type !== 3), ["end"]);
  });
  await t.step("nothing behind what was enough", () => {
    const two = new Uint8Array([
      ...writeMessage(MessageType.Frame, bytes("enough")),
      ...writeMessage(MessageType.Frame, bytes("more")),
    ]);
    assert.deepEqual(read([two]), ["3 enough", "end"]);
  });
});

Deno.test("MESSAGE_BYTES_MAX names each type", alone, () => {
  for (const type of Object.values(MessageType)) assert.ok(MESSAGE_BYTES_MAX[type] !== undefined);
});
