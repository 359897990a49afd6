// Goal: the client's side of HTTP/2 keeps to RFC 9113, and no server can lead it astray: what breaks the
// protocol ends the connection, what breaks a response ends that. Method: frames made by hand, and random
// ones; the client's own are read back.

import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { concat, getU32 } from "../../bytes/mod.ts";
import { frame, headerBlock, readFrames, setting, uint32 } from "../listen/fakes.ts";
import { Flag, FrameType, PREFACE, Setting } from "../listen/http2/frames.ts";
import { type HeaderField, HpackDecoder } from "../listen/http2/hpack.ts";
import { fieldOf } from "../listen/http2/hpack_writer.ts";
import { Http2Client, type Http2Events, type Http2Stream } from "./http2_client.ts";

const unit = { permissions: "none" } as const;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const BODY_BYTES_MAX = 1_000;
const HEAD = Uint8Array.from(fieldOf(":method", "POST"));
const NAMES = Object.entries(FrameType);

/** A client with the server at hand; requests are named by a text, which is their body too. */
class Bench implements Http2Events<string> {
  /** What the client told. */
  readonly told: string[] = [];
  heard = 0;
  hasFailed = false;
  #writes: Uint8Array[] = [];
  readonly client = new Http2Client<string>(BODY_BYTES_MAX, this);

  /** A connection on which the server has said its settings. */
  static open(...settings: Uint8Array[]): Bench {
    const bench = new Bench();
    bench.send(frame(FrameType.Settings, 0, 0, concat(...settings)));
    bench.read();
    return bench;
  }

  write(bytes: Uint8Array): void {
    this.#writes.push(bytes);
  }

  onHeard(): void {
    this.heard++;
  }

  onResponse({ owner, status, contentType, body }: Http2Stream<string>): void {
    this.told.push(`${owner}: ${status} ${contentType} ${decoder.decode(body)}`);
  }

  onOverlong({ owner }: Http2Stream<string>): void {
    this.told.push(`${owner}: overlong`);
  }

  onBroken({ owner }: Http2Stream<string>): void {
    this.told.push(`${owner}: broken`);
  }

  onLeaving(): void {
    this.told.push("leaving");
  }

  onFailed(): void {
    assert.equal(this.hasFailed, false, "told once");
    this.hasFailed = true;
  }

  request(name: string): Http2Stream<string> {
    return this.client.request(name, HEAD, encoder.encode(name));
  }

  /** The frames arrive in one chunk, whose memory is used again at once. */
  send(...frames: readonly Uint8Array[]): void {
    const chunk = concat(...frames);
    this.client.receive(chunk);
    chunk.fill(0xa5);
  }

  /** Frames that the client has written since, as `type/flags/stream number or length`. */
  read(): string[] {
    const bytes = concat(...this.#writes);
    this.#writes = [];
    const isFirst = PREFACE.every((byte, i) => bytes[i] === byte);
    return readFrames(bytes.subarray(isFirst ? PREFACE.length : 0)).map((f) => {
      const name = NAMES.find(([, type]) => type === f.type)?.[0];
      const { length } = f.payload;
      const says = f.type !== FrameType.Data && length === 4 ? getU32(f.payload, 0) : length;
      return `${name}/${f.flags}/${f.streamId} ${says}`;
    });
  }
}

const headers = (id: number, fields: readonly (readonly [string, string])[], flags = 4) =>
  frame(FrameType.Headers, flags, id, headerBlock(fields));
const OK = [[":status", "200"], ["content-type", "Text/Plain; charset=x"]] as const;
const data = (id: number, text: string, flags = 0) =>
  frame(FrameType.Data, flags, id, encoder.encode(text));
const goaway = (lastId: number) =>
  frame(FrameType.Goaway, 0, 0, concat(uint32(lastId), uint32(0), encoder.encode("bye")));
const windowUpdate = (id: number, increment: number) =>
  frame(FrameType.WindowUpdate, 0, id, uint32(increment));

Deno.test("Http2Client begins with the preface, its settings and a window", unit, () => {
  const bench = new Bench();
  assert.deepEqual(bench.read(), ["Settings/0/0 12", "WindowUpdate/0/0 196609"]);
});

Deno.test("Http2Client sends requests and reads responses, however they are cut", unit, () => {
  const bytes = concat(
    frame(FrameType.Settings, 0, 0),
    headers(3, OK),
    headers(1, [[":status", "103"], ["link", "x"]]),
    headers(1, OK),
    data(3, "thr"),
    data(1, "one", Flag.EndStream),
    frame(FrameType.Data, Flag.Padded, 3, concat(Uint8Array.of(2), encoder.encode("ee__"))),
    headers(3, [["trailer", "x"]], Flag.EndHeaders | Flag.EndStream),
  );
  for (let cut = 1; cut <= bytes.length; cut++) {
    const bench = new Bench();
    bench.request("a");
    bench.request("b");
    for (let at = 0; at < bytes.length; at += cut) bench.send(bytes.slice(at, at + cut));
    assert.deepEqual(bench.told, ["a: 200 text/plain one", "b: 200 text/plain three"], `${cut}`);
    // The first block says that no dynamic table is used.
    assert.deepEqual(bench.read().slice(2), [
      ...["Headers/4/1 2", "Data/1/1 1", "Headers/4/3 1", "Data/1/3 1", "Settings/1/0 0"],
    ]);
  }
});

Deno.test("Http2Client keeps to the windows of the server", unit, () => {
  const bench = Bench.open(setting(Setting.InitialWindowSize, 3));
  bench.request("abcdefgh");
  assert.deepEqual(bench.read(), ["Headers/4/1 2", "Data/0/1 3"]);
  bench.send(windowUpdate(1, 1), windowUpdate(1, 1));
  assert.deepEqual(bench.read(), ["Data/0/1 1", "Data/0/1 1"]);
  // Below zero by four, and two more than that.
  bench.send(frame(FrameType.Settings, 0, 0, setting(Setting.InitialWindowSize, 0)));
  bench.send(windowUpdate(1, 3));
  assert.deepEqual(bench.read(), ["Settings/1/0 0"]);
  bench.send(windowUpdate(1, 2));
  assert.deepEqual(bench.read(), ["Data/0/1 2"]);
  // The server has heard enough: the rest is not sent.
  bench.send(headers(1, OK, Flag.EndHeaders | Flag.EndStream));
  assert.deepEqual(bench.read(), ["RstStream/0/1 0"]);
  assert.deepEqual(bench.told, ["abcdefgh: 200 text/plain "]);
});

Deno.test("Http2Client opens the server's window again as it reads", unit, () => {
  const bench = Bench.open();
  let received = 0;
  for (let id = 1; received < 300_000; id += 2) {
    bench.request("a");
    bench.send(headers(id, OK), data(id, "x".repeat(BODY_BYTES_MAX), Flag.EndStream));
    received += BODY_BYTES_MAX;
  }
  const opened = bench.read().filter((line) => line.startsWith("WindowUpdate/0/0"));
  const sum = opened.reduce((bytes, line) => bytes + Number(line.split(" ")[1]), 0);
  assert.ok(opened.length >= 3 && received - sum < 65_536, `${sum} of ${received}`);
});

Deno.test("Http2Client has room for as many streams as the server takes", unit, () => {
  const bench = new Bench();
  assert.equal(bench.client.room, 100);
  bench.send(frame(FrameType.Settings, 0, 0, setting(Setting.MaxConcurrentStreams, 2)));
  bench.request("a");
  assert.equal(bench.client.room, 1);
  bench.client.cancel(bench.request("b"));
  assert.deepEqual(bench.read().slice(-1), ["RstStream/0/3 8"]);
  assert.equal(bench.client.room, 1);
});

Deno.test("Http2Client lets a server go, and loses no response that it still gives", unit, () => {
  const bench = Bench.open();
  for (const name of ["a", "b", "c"]) bench.request(name);
  bench.send(goaway(2 ** 31 - 1)); // It says that it will go, and then with which stream.
  bench.send(goaway(1));
  assert.deepEqual(bench.told.splice(0), ["leaving", "b: broken", "c: broken", "leaving"]);
  assert.equal(bench.client.room, 0);
  bench.send(headers(1, OK), data(1, "one", Flag.EndStream), headers(3, OK), data(3, "late"));
  assert.deepEqual([bench.told, bench.hasFailed], [["a: 200 text/plain one"], false]);
});

Deno.test("Http2Client forgets in the middle of what it reads", unit, () => {
  const bench = Bench.open();
  for (const name of ["a", "b"]) bench.request(name);
  bench.onBroken = () => bench.client.close();
  bench.send(frame(FrameType.RstStream, 0, 1, uint32(7)), headers(3, OK, 5), goaway(0));
  assert.deepEqual([bench.told, bench.hasFailed, bench.client.room], [[], false, 0]);
});

/** What ends one response, on stream 1, and nothing else. */
const BROKEN: readonly (readonly [string, readonly Uint8Array[]])[] = [
  ["a reset", [frame(FrameType.RstStream, 0, 1, uint32(7))]],
  ["no status", [headers(1, [["content-type", "x"]])]],
  ["two of them", [headers(1, [[":status", "200"], [":status", "200"]])]],
  ["one that is no number", [headers(1, [[":status", "2x0"]])]],
  ["a field that may not be", [headers(1, [...OK, ["a b", "c"]])]],
  ["two lengths", [headers(1, [...OK, ["content-length", "1"], ["content-length", "2"]])]],
  ["a body before the head", [data(1, "text")]],
  ["an end behind an interim head", [headers(1, [[":status", "100"]], 5)]],
  ["a second head", [headers(1, OK), headers(1, OK)]],
  ["less than announced", [headers(1, [...OK, ["content-length", "5"]]), data(1, "four", 1)]],
  ["nothing in place of a body", [headers(1, [...OK, ["content-length", "5"]], 5)]],
  ["a window opened by nothing", [windowUpdate(1, 0)]],
  ["a window too wide", [windowUpdate(1, 2 ** 31 - 1)]],
];

Deno.test("Http2Client drops a response that makes no sense, and only that", unit, async (t) => {
  for (const [name, frames] of BROKEN) {
    await t.step(name, () => {
      const bench = Bench.open();
      bench.request("a");
      bench.request("b");
      bench.send(...frames, headers(3, OK), data(3, "next", Flag.EndStream));
      assert.deepEqual(bench.told, ["a: broken", "b: 200 text/plain next"]);
      assert.equal(bench.hasFailed, false);
    });
  }
});

Deno.test("Http2Client takes no more of a body than may be", unit, () => {
  const bench = Bench.open();
  bench.request("a");
  bench.send(headers(1, OK), data(1, "x".repeat(BODY_BYTES_MAX)), data(1, "y"), data(1, "z"));
  assert.deepEqual([bench.told, bench.hasFailed], [["a: overlong"], false]);
});

/** What ends the connection, with a request on stream 1. */
const FATAL: readonly (readonly [string, readonly Uint8Array[]])[] = [
  ["a frame too large", [frame(FrameType.Data, 0, 1, new Uint8Array(16_385))]],
  ["a push", [frame(FrameType.PushPromise, 4, 1, concat(uint32(2), headerBlock(OK)))]],
  ["a response to nothing", [headers(3, OK)]],
  ["a response of an even number", [headers(2, OK)]],
  ["a body of nothing", [data(3, "x")]],
  ["a reset of nothing", [frame(FrameType.RstStream, 0, 3, uint32(7))]],
  ["a window of nothing", [windowUpdate(3, 1)]],
  ["a window opened by nothing", [windowUpdate(0, 0)]],
  ["a window too wide", [windowUpdate(0, 2 ** 31 - 1)]],
  ["a setting too large", [frame(FrameType.Settings, 0, 0, setting(4, 2 ** 31))]],
  ["padding longer than its frame", [frame(FrameType.Data, Flag.Padded, 1, Uint8Array.of(9, 1))]],
  ["fields out of no table", [frame(FrameType.Headers, 4, 1, Uint8Array.of(0xfe))]],
  ["CONTINUATION of nothing", [frame(FrameType.Continuation, 4, 1)]],
  ["a frame amid a header block", [
    frame(FrameType.Headers, 0, 1, headerBlock(OK)),
    frame(FrameType.Ping, 0, 0, new Uint8Array(8)),
  ]],
  ["a header block without end", [
    frame(FrameType.Headers, 0, 1, headerBlock(OK)),
    ...Array.from({ length: 9 }, () => frame(FrameType.Continuation, 0, 1, headerBlock(OK))),
  ]],
  ["a flood of PING", Array.from({ length: 600 }, () => frame(6, 0, 0, new Uint8Array(8)))],
  ["a flood of SETTINGS", Array.from({ length: 600 }, () => frame(FrameType.Settings, 0, 0))],
  ["a flood of empty DATA", [headers(1, OK), ...Array.from({ length: 600 }, () => data(1, ""))]],
  ["a flood of interim heads", Array.from({ length: 600 }, () => headers(1, [[":status", "102"]]))],
  ["a flood for nobody", Array.from({ length: 600 }, () => frame(0xfa, 0, 7))],
];

Deno.test("Http2Client ends with a server that breaks the protocol", unit, async (t) => {
  await t.step("whose settings do not come first", () => {
    const bench = new Bench();
    bench.request("a");
    bench.send(headers(1, OK));
    assert.deepEqual([bench.told, bench.hasFailed], [[], true]);
  });
  for (const [name, frames] of FATAL) {
    await t.step(name, () => {
      const bench = Bench.open();
      bench.request("a");
      bench.send(...frames, headers(1, OK, Flag.EndHeaders | Flag.EndStream));
      assert.deepEqual([bench.told, bench.hasFailed, bench.client.room], [[], true, 0]);
    });
  }
});

Deno.test("Http2Client allows a server its frames of every second", unit, () => {
  const bench = Bench.open();
  for (let second = 0; second < 3; second++) {
    bench.client.renew();
    for (let i = 0; i < 500; i++) bench.send(frame(FrameType.Ping, 0, 0, new Uint8Array(8)));
  }
  assert.equal(bench.hasFailed, false);
  assert.equal(bench.read().filter((line) => line === "Ping/1/0 8").length, 1_500);
});

Deno.test("Http2Client takes any frames without harm", unit, () => {
  const prng = new Prng(seedFromEnv());
  const seeds = [
    ...FATAL.flatMap(([, frames]) => frames.slice(0, 2)),
    ...BROKEN.flatMap(([, frames]) => frames),
    headers(1, OK),
    data(1, "one", 1),
    goaway(3),
  ];
  let whole = 0;
  for (let i = 0; i < 1_500; i++) {
    const bench = Bench.open(setting(Setting.InitialWindowSize, prng.int(100)));
    const names = ["a", "bb", "ccc"];
    for (const name of names) bench.request(name);
    for (let j = prng.int(12); j > 0; j--) {
      const bytes = prng.pick(seeds).slice();
      for (let k = prng.int(2); k > 0; k--) bytes[prng.int(bytes.length)] = prng.next();
      if (prng.chance(0.3)) bytes[8] = prng.int(8);
      const cut = prng.int(bytes.length);
      bench.send(bytes.slice(0, cut), bytes.slice(cut));
    }
    bench.read(); // Every frame written is whole.
    const ends = bench.told.filter((line) => line !== "leaving").map((line) => line.split(":")[0]);
    assert.equal(new Set(ends).size, ends.length, `told once of each: ${bench.told}`);
    if (!bench.hasFailed) whole++;
  }
  assert.ok(whole > 0, "some last to their end");
});

Deno.test("fieldOf() writes fields of any length (RFC 7541 §5.1)", unit, () => {
  for (const length of [0, 1, 126, 127, 128, 300, 4_000, 9_000]) {
    const path = `/${"p".repeat(length)}`;
    const block = Uint8Array.from([...fieldOf(":path", path), ...fieldOf("x-other", "y")]);
    const fields: string[] = [];
    const onField = ({ value, valueStart, valueEnd }: HeaderField) =>
      fields.push(decoder.decode(value.slice(valueStart, valueEnd)));
    assert.equal(new HpackDecoder().read(block, 0, block.length, { onField }), 0);
    assert.deepEqual(fields, [path, "y"]);
  }
});
