import { concat } from "../../../bytes/mod.ts";
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../../../tests/prng.ts";
import {
  frame,
  headerBlock,
  Http2Bench,
  LIMITS,
  requestFields,
  setting,
  uint32,
} from "../fakes.ts";
import { Flag, FrameType, PREFACE } from "./frames.ts";

const unit = { permissions: "none" } as const;
const encoder = new TextEncoder();
const TEXT = "content-type=text/plain";

/** The two lines of an answer to stream `id`. */
function answer(id: number, text: string): string[] {
  return [
    `${id} 200 ${TEXT} content-length=${text.length} cache-control=max-age=60`,
    `${id} "${text}" end`,
  ];
}

const post = (id: number, path: string, more: readonly (readonly [string, string])[] = []) =>
  frame(FrameType.Headers, Flag.EndHeaders, id, headerBlock(requestFields("POST", path, more)));
const get = (id: number, path: string, more: readonly (readonly [string, string])[] = []) =>
  frame(
    FrameType.Headers,
    Flag.EndHeaders | Flag.EndStream,
    id,
    headerBlock(requestFields("GET", path, more)),
  );
const data = (id: number, text: string, flags = 0) =>
  frame(FrameType.Data, flags, id, encoder.encode(text));

Deno.test("Http2Connection tells its settings and answers theirs", unit, () => {
  const bench = new Http2Bench();
  assert.deepEqual(bench.read(), ["settings of 4", "0 window +196609"]);
  bench.send(PREFACE, frame(FrameType.Settings, 0, 0));
  assert.deepEqual(bench.read(), ["settings ack"]);
});

Deno.test("Http2Connection answers GET, HEAD and POST, each in one write", unit, () => {
  const bench = Http2Bench.open();
  bench.request(1, "/a?b=c");
  assert.equal(bench.socket.writes.length, 1);
  assert.deepEqual(bench.read(), answer(1, "GET /a?b=c "));
  bench.request(3, "/p", "body");
  assert.equal(bench.socket.writes.length, 1);
  assert.deepEqual(bench.read(), answer(3, "POST /p body"));
  bench.send(frame(FrameType.Headers, 5, 5, headerBlock(requestFields("HEAD", "/h"))));
  assert.deepEqual(bench.read(), [`5 200 ${TEXT} content-length=8 cache-control=max-age=60 end`]);
  bench.send(frame(FrameType.Headers, 5, 7, headerBlock(requestFields("DELETE", "/"))));
  assert.deepEqual(bench.read(), [`7 200 ${TEXT} content-length=8`, '7 "OTHER / " end']);
});

Deno.test("Http2Connection answers what came in together together", unit, () => {
  const bench = Http2Bench.open();
  bench.send(get(1, "/a"), get(3, "/wait"), get(5, "/b"));
  assert.equal(bench.socket.writes.length, 1);
  assert.deepEqual(bench.read(), [...answer(1, "GET /a "), ...answer(5, "GET /b ")]);
  bench.handler.answer();
  assert.deepEqual(bench.read(), answer(3, "GET /wait "));
});

Deno.test("Http2Connection reads requests cut anywhere", unit, () => {
  const bytes = concat(
    PREFACE,
    frame(FrameType.Settings, 0, 0),
    get(1, "/a"),
    post(3, "/b"),
    data(3, "one "),
    data(3, "two", 1),
  );
  for (let cut = 1; cut <= bytes.length; cut += cut < 40 ? 1 : 7) {
    const bench = new Http2Bench();
    for (let at = 0; at < bytes.length; at += cut) bench.send(bytes.slice(at, at + cut));
    assert.deepEqual(bench.handler.seen, ["GET /a ", "POST /b one two"], `cut every ${cut}`);
  }
});

Deno.test("Http2Connection reads padding, priority, CONTINUATION and trailers", unit, () => {
  const bench = Http2Bench.open();
  const block = headerBlock(requestFields("POST", "/p"));
  const padded = concat(
    Uint8Array.of(3),
    new Uint8Array(5),
    block.subarray(0, 10),
    new Uint8Array(3),
  );
  const flags = Flag.Padded | Flag.Priority;
  bench.send(
    frame(FrameType.Headers, flags, 1, padded),
    frame(FrameType.Continuation, 0, 1, block.subarray(10, 20)),
    frame(FrameType.Continuation, Flag.EndHeaders, 1, block.subarray(20)),
    frame(FrameType.Priority, 0, 1, new Uint8Array(5)),
    frame(
      FrameType.Data,
      Flag.Padded,
      1,
      concat(Uint8Array.of(2), encoder.encode("text"), new Uint8Array(2)),
    ),
    frame(0xfa, 0xff, 1, new Uint8Array(99)),
    frame(FrameType.Headers, 5, 1, headerBlock([["trailer", "x"]])),
  );
  assert.deepEqual(bench.read(), answer(1, "POST /p text"));
  assert.equal(bench.handler.rejected, 0);
});

const PSEUDO = requestFields("GET", "/");
const BAD_REQUESTS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  ["no method", PSEUDO.filter(([name]) => name !== ":method")],
  ["no scheme", PSEUDO.filter(([name]) => name !== ":scheme")],
  ["no path", PSEUDO.filter(([name]) => name !== ":path")],
  ["an empty path", PSEUDO.map(([name, value]) => [name, name === ":path" ? "" : value])],
  ["a path without a slash", requestFields("GET", "dns-query")],
  ["a method twice", [...PSEUDO, [":method", "GET"]]],
  ["a pseudo-header behind a field", [["a", "b"], ...PSEUDO]],
  ["a pseudo-header of a response", [...PSEUDO, [":status", "200"]]],
  ["an unknown pseudo-header", [...PSEUDO, [":protocol", "x"]]],
  ["a name in upper case", [...PSEUDO, ["Accept", "x"]]],
  ["a line end in a value", [...PSEUDO, ["accept", "x\r\ny"]]],
  ["connection", [...PSEUDO, ["connection", "close"]]],
  ["transfer-encoding", [...PSEUDO, ["transfer-encoding", "chunked"]]],
  ["te: gzip", [...PSEUDO, ["te", "gzip"]]],
  ["two lengths", [...PSEUDO, ["content-length", "1"], ["content-length", "2"]]],
  ["a length without a body", [...PSEUDO, ["content-length", "1"]]],
  ["a length that is no number", [...PSEUDO, ["content-length", "-1"]]],
];

Deno.test("Http2Connection resets requests that are malformed, and only these", unit, async (t) => {
  for (const [name, fields] of BAD_REQUESTS) {
    await t.step(name, () => {
      const bench = Http2Bench.open();
      bench.send(frame(FrameType.Headers, 5, 1, headerBlock(fields)), get(3, "/next"));
      assert.deepEqual(bench.read(), ["1 reset 1", ...answer(3, "GET /next ")]);
      assert.deepEqual([bench.handler.rejected, bench.socket.ended], [1, false]);
    });
  }
});

Deno.test("Http2Connection holds a body against its announced length", unit, () => {
  const bench = Http2Bench.open();
  bench.send(post(1, "/p", [["content-length", "5"]]), data(1, "four", 1));
  assert.deepEqual(bench.read(), ["1 reset 1"]);
  bench.send(post(3, "/p", [["content-length", "4"]]), data(3, "four"), data(3, "", 1));
  assert.deepEqual(bench.read(), answer(3, "POST /p four"));
});

const FATAL: readonly (readonly [string, readonly Uint8Array[], number])[] = [
  ["an even stream", [get(2, "/")], 1],
  ["stream 0", [get(0, "/")], 1],
  ["DATA before HEADERS", [data(1, "x")], 1],
  ["DATA on stream 0", [data(0, "x")], 1],
  [
    "padding longer than the frame",
    [post(1, "/"), frame(0, Flag.Padded, 1, Uint8Array.of(9, 1))],
    1,
  ],
  ["HEADERS too short for its priority", [frame(1, 0x24, 1, new Uint8Array(3))], 1],
  ["RST_STREAM of an idle stream", [frame(3, 0, 1, uint32(8))], 1],
  ["RST_STREAM of 3 bytes", [get(1, "/"), frame(3, 0, 1, new Uint8Array(3))], 6],
  ["WINDOW_UPDATE of an idle stream", [frame(8, 0, 1, uint32(8))], 1],
  ["WINDOW_UPDATE of nothing", [frame(8, 0, 0, uint32(0))], 1],
  ["WINDOW_UPDATE of 5 bytes", [frame(8, 0, 0, new Uint8Array(5))], 6],
  ["a window of more than 2^31-1", [frame(8, 0, 0, uint32(0x7fffffff))], 3],
  ["an initial window of 2^31", [frame(4, 0, 0, setting(4, 0x80000000))], 3],
  ["ENABLE_PUSH of 2", [frame(4, 0, 0, setting(2, 2))], 1],
  ["MAX_FRAME_SIZE of 1", [frame(4, 0, 0, setting(5, 1))], 1],
  ["SETTINGS of 5 bytes", [frame(4, 0, 0, new Uint8Array(5))], 6],
  ["SETTINGS of a stream", [frame(4, 0, 1)], 1],
  ["an acknowledgement with settings", [frame(4, 1, 0, setting(4, 9))], 6],
  ["PING of 7 bytes", [frame(6, 0, 0, new Uint8Array(7))], 6],
  ["PING of a stream", [frame(6, 0, 1, new Uint8Array(8))], 1],
  ["PRIORITY of stream 0", [frame(2, 0, 0, new Uint8Array(5))], 1],
  ["PUSH_PROMISE", [frame(5, 4, 1, new Uint8Array(8))], 1],
  ["GOAWAY of a stream", [frame(7, 0, 1, new Uint8Array(8))], 1],
  ["GOAWAY of 4 bytes", [frame(7, 0, 0, new Uint8Array(4))], 6],
  ["CONTINUATION without HEADERS", [frame(9, 4, 1)], 1],
  [
    "a frame between HEADERS and CONTINUATION",
    [frame(1, 1, 1), frame(6, 0, 0, new Uint8Array(8))],
    1,
  ],
  ["CONTINUATION of another stream", [frame(1, 1, 1), frame(9, 4, 3)], 1],
  ["a header block that is no HPACK", [frame(1, 5, 1, Uint8Array.of(0x80))], 9],
  ["a frame of 16385 bytes", [frame(0, 0, 1, new Uint8Array(16_385))], 6],
];

Deno.test("Http2Connection ends for what breaks the connection", unit, async (t) => {
  for (const [name, frames, error] of FATAL) {
    await t.step(name, () => {
      const bench = Http2Bench.open();
      bench.send(...frames);
      assert.match(bench.read().at(-1)!, new RegExp(`^goaway \\d+ ${error}$`));
      assert.deepEqual([bench.socket.ended, bench.handler.rejected], [true, 1]);
      bench.send(get(9, "/late"));
      assert.ok(!bench.handler.seen.includes("GET /late "));
    });
  }
});

Deno.test("Http2Connection wants the preface, then SETTINGS", unit, () => {
  for (const first of [encoder.encode("GET / HTTP/1.1\r\n\r\n"), concat(PREFACE, get(1, "/"))]) {
    const bench = new Http2Bench();
    bench.send(first);
    assert.equal(bench.read().at(-1), "goaway 0 1");
    assert.deepEqual([bench.socket.ended, bench.handler.seen], [true, []]);
  }
});

Deno.test("Http2Connection answers as far as the client's windows go", unit, () => {
  const bench = Http2Bench.open(LIMITS, setting(4, 10));
  bench.request(1, "/long/35");
  assert.deepEqual(bench.read().slice(1), [`1 "${"x".repeat(10)}"`]);
  bench.send(frame(FrameType.WindowUpdate, 0, 1, uint32(20)));
  assert.deepEqual(bench.read(), [`1 "${"x".repeat(20)}"`]);
  // Smaller than what is used already: the window is negative until it is opened again.
  bench.send(frame(FrameType.Settings, 0, 0, setting(4, 0)));
  assert.deepEqual(bench.read(), ["settings ack"]);
  bench.send(frame(FrameType.WindowUpdate, 0, 1, uint32(10)));
  assert.deepEqual(bench.read(), []);
  bench.send(frame(FrameType.Settings, 0, 0, setting(4, 10)));
  assert.deepEqual(bench.read(), ["settings ack", '1 "xxxxx" end']);
});

Deno.test("Http2Connection shares the connection's window", unit, () => {
  const bench = Http2Bench.open(LIMITS, setting(4, 1_000_000));
  bench.request(1, "/long/60000");
  bench.request(3, "/long/10000");
  const lines = bench.read();
  const sent = lines.filter((line) => line.includes(" bytes")).map((line) =>
    /\d+ bytes/.exec(line)![0]
  );
  assert.deepEqual(sent, [
    "16384 bytes",
    "16384 bytes",
    "16384 bytes",
    "10848 bytes",
    "5535 bytes",
  ]);
  bench.request(5, "/wait");
  bench.handler.answer();
  assert.equal(bench.read().length, 1); // HEADERS, no room for DATA.
  bench.send(frame(FrameType.WindowUpdate, 0, 0, uint32(5_000)));
  assert.deepEqual(bench.read(), ['3 "4465 bytes" end', '5 "GET /wait " end']);
});

Deno.test("Http2Connection gives the client its window back", unit, () => {
  const bench = Http2Bench.open();
  const body = "b".repeat(16_000);
  for (let id = 1; id < 60; id += 2) {
    bench.send(post(id, "/long/1"), data(id, body), data(id, body, 1));
    assert.equal(bench.handler.seen.length, (id + 1) / 2);
  }
  const updates = bench.read().filter((line) => line.startsWith("0 window"));
  const sum = updates.reduce((total, line) => total + Number(line.split("+")[1]), 0);
  assert.ok(sum > 30 * 32_000 - 256 * 1024 && sum <= 30 * 32_000, `${sum}`);
});

Deno.test("Http2Connection holds the client to the windows it gave", unit, () => {
  const part = "b".repeat(16_000);
  const bench = Http2Bench.open();
  // Bodies that do not end: the connection's window is 256 KiB.
  for (let id = 1; id < 9; id += 2) bench.send(post(id, "/p"), ...Array(4).fill(data(id, part)));
  assert.equal(bench.socket.ended, false);
  bench.send(post(9, "/p"), data(9, part.slice(0, 6_144)), data(9, "x"));
  assert.equal(bench.read().at(-1), "goaway 9 3");
});

Deno.test("Http2Connection answers 413 to a body that is too large", unit, () => {
  const part = "b".repeat(16_384);
  const written = (bench: Http2Bench) =>
    bench.read().filter((line) => !line.startsWith("0 window"));
  const bench = Http2Bench.open();
  bench.send(post(1, "/p"), ...Array(4).fill(data(1, part)));
  const failed = written(bench);
  assert.match(failed[0], /^1 413 /);
  assert.match(failed.at(-1)!, / end$/);
  bench.send(data(1, "late"), data(1, "later", 1), get(3, "/next"));
  assert.deepEqual(written(bench), answer(3, "GET /next "));
  bench.send(post(5, "/p", [["content-length", "65536"]]));
  assert.match(written(bench)[0], /^5 413 /);
  // One that sends all it may is told that no more will be taken.
  bench.send(...Array(4).fill(data(5, part)), get(7, "/next"));
  assert.deepEqual(written(bench), answer(7, "GET /next "));
  bench.send(data(5, part.slice(1)), data(5, "late"));
  assert.deepEqual(written(bench), ["5 reset 0"]);
  assert.equal(bench.handler.rejected, 2);
});

Deno.test("Http2Connection answers 431 to too many fields and reads on", unit, () => {
  const bench = Http2Bench.open();
  const many = Array.from({ length: 300 }, (_, i) => [`x-${i}`, "v".repeat(20)] as const);
  bench.send(get(1, "/a", many), get(3, "/b"));
  const lines = bench.read();
  assert.match(lines[0], /^1 431 /);
  assert.deepEqual(lines.slice(2), answer(3, "GET /b "));
});

Deno.test("Http2Connection takes so many requests at a time, reset ones too", unit, () => {
  const bench = Http2Bench.open({ ...LIMITS, requestsMax: 3 });
  for (const id of [1, 3, 5, 7]) bench.request(id, "/wait");
  assert.deepEqual(bench.read(), ["7 reset 7"]);
  for (const id of [1, 3]) bench.send(frame(FrameType.RstStream, 0, id, uint32(8)));
  bench.request(9, "/wait");
  assert.deepEqual(bench.read(), ["9 reset 7"]);
  bench.handler.answer();
  bench.handler.answer();
  assert.deepEqual(bench.read(), []); // Nobody wants to know.
  bench.request(11, "/now");
  assert.deepEqual(bench.read(), answer(11, "GET /now "));
  bench.handler.answer();
  assert.deepEqual(bench.read(), answer(5, "GET /wait "));
});

const FLOODS: readonly (readonly [string, () => Uint8Array])[] = [
  ["PING", () => frame(FrameType.Ping, 0, 0, new Uint8Array(8))],
  ["SETTINGS", () => frame(FrameType.Settings, 0, 0)],
  ["PRIORITY", () => frame(FrameType.Priority, 0, 3, new Uint8Array(5))],
  ["WINDOW_UPDATE", () => frame(FrameType.WindowUpdate, 0, 0, uint32(1))],
  ["unknown frames", () => frame(0xbb, 0, 0)],
  ["empty DATA", () => data(1, "")],
  ["RST_STREAM", () => frame(FrameType.RstStream, 0, 1, uint32(8))],
  ["DATA of a closed stream", () => data(1, "x")],
];

Deno.test("Http2Connection ends when a client floods it", unit, async (t) => {
  for (const [name, next] of FLOODS) {
    await t.step(name, () => {
      const bench = Http2Bench.open();
      bench.send(post(1, "/p"));
      if (name.includes("closed")) bench.send(data(1, "", 1));
      bench.send(...Array.from({ length: 300 }, next));
      bench.connection.tick(performance.now()); // Another second, another budget.
      bench.send(...Array.from({ length: 300 }, next));
      assert.equal(bench.socket.ended, false, "some are let pass");
      bench.send(...Array.from({ length: 5_000 }, next));
      assert.match(bench.read().at(-1)!, /^goaway 1 11$/);
      assert.deepEqual([bench.socket.ended, bench.handler.rejected], [true, 1]);
    });
  }
});

Deno.test("Http2Connection ends rapid resets", unit, () => {
  const bench = Http2Bench.open();
  for (let id = 1; id < 10_000 && !bench.socket.ended; id += 2) {
    bench.send(get(id, "/wait"), frame(FrameType.RstStream, 0, id, uint32(8)));
  }
  assert.equal(bench.handler.waiting.length, LIMITS.requestsMax);
  assert.match(bench.read().at(-1)!, /^goaway \d+ 11$/);
  while (bench.handler.waiting.length > 0) bench.handler.answer();
});

Deno.test("Http2Connection ends a flood of CONTINUATION", unit, () => {
  const bench = Http2Bench.open();
  bench.send(frame(FrameType.Headers, 1, 1));
  bench.send(...Array.from({ length: 9 }, () => frame(FrameType.Continuation, 0, 1)));
  assert.equal(bench.read().at(-1), "goaway 0 11");
  const large = Http2Bench.open();
  large.send(frame(FrameType.Headers, 1, 1, new Uint8Array(16_000)));
  large.send(frame(FrameType.Continuation, 4, 1, new Uint8Array(1_000)));
  assert.equal(large.read().at(-1), "goaway 0 11");
});

Deno.test("Http2Connection cuts off clients that open no window for their answers", unit, () => {
  const bench = Http2Bench.open({ ...LIMITS, requestsMax: 100 }, setting(4, 0));
  for (let id = 1; id < 100 && !bench.socket.ended; id += 2) bench.request(id, "/long/60000");
  assert.match(bench.read().at(-1)!, /^goaway \d+ 11$/);
});

Deno.test("Http2Connection gives up what takes too long", unit, async (t) => {
  const late = LIMITS.requestMs + 1;
  const cases: readonly (readonly [string, (bench: Http2Bench) => void])[] = [
    ["a frame in parts", (bench) => bench.send(get(1, "/").subarray(0, 12))],
    ["a header block in parts", (bench) => bench.send(frame(FrameType.Headers, 1, 1))],
    ["a body in parts", (bench) => bench.send(post(1, "/"), data(1, "x"))],
    ["an answer nobody reads", (bench) => {
      bench.send(frame(FrameType.Settings, 0, 0, setting(4, 1)));
      bench.request(1, "/long/100");
    }],
  ];
  for (const [name, begin] of cases) {
    await t.step(name, () => {
      const bench = Http2Bench.open();
      begin(bench);
      const startMs = performance.now();
      bench.connection.tick(startMs + late - 1_000);
      assert.equal(bench.socket.ended, false);
      bench.connection.tick(startMs + late);
      assert.match(bench.read().at(-1)!, /^goaway \d 11$/);
    });
  }
  await t.step("nothing at all", () => {
    const bench = Http2Bench.open();
    bench.request(1, "/wait");
    bench.connection.tick(performance.now() + LIMITS.idleMs + 1);
    assert.equal(bench.socket.ended, false, "while an answer is awaited");
    bench.handler.answer();
    bench.connection.tick(performance.now() + LIMITS.idleMs + 1);
    assert.equal(bench.read().at(-1), "goaway 1 0");
    assert.deepEqual([bench.socket.ended, bench.handler.rejected], [true, 0]);
  });
});

Deno.test("Http2Connection drains: what waits is answered, what comes is refused", unit, () => {
  const bench = Http2Bench.open();
  bench.request(1, "/wait");
  bench.connection.drain();
  bench.request(3, "/late");
  assert.deepEqual(bench.read(), ["goaway 1 0", "3 reset 7"]);
  bench.handler.answer();
  assert.deepEqual(bench.read(), answer(1, "GET /wait "));
  assert.ok(bench.socket.ended);
  const idle = Http2Bench.open();
  idle.connection.drain();
  assert.deepEqual([idle.read(), idle.socket.ended], [["goaway 0 0"], true]);
});

Deno.test("Http2Connection answers a client that has closed its side", unit, () => {
  const bench = Http2Bench.open();
  bench.request(1, "/wait");
  bench.connection.onEnd();
  assert.equal(bench.socket.ended, false);
  bench.handler.answer();
  assert.deepEqual(bench.read(), [...answer(1, "GET /wait "), "goaway 1 0"]);
  assert.ok(bench.socket.ended);
});

Deno.test("Http2Connection forgets a client that is gone", unit, () => {
  const bench = Http2Bench.open();
  bench.request(1, "/wait");
  bench.connection.onClose();
  bench.handler.answer();
  bench.request(3, "/late");
  assert.deepEqual([bench.read(), bench.handler.seen], [[], ["GET /wait "]]);
});

Deno.test("Http2Connection takes any frames without harm", unit, () => {
  const prng = new Prng(seedFromEnv());
  const seeds = [
    ...FATAL.flatMap(([, frames]) => frames),
    ...FLOODS.map(([, next]) => next()),
    get(1, "/a"),
    get(3, "/wait"),
    get(5, "/long/70000"),
    post(7, "/p"),
    data(7, "body", 1),
    ...BAD_REQUESTS.map(([, fields]) => frame(FrameType.Headers, 5, 9, headerBlock(fields))),
  ];
  let whole = 0;
  for (let i = 0; i < 1_500; i++) {
    const bench = Http2Bench.open({ ...LIMITS, requestsMax: 4 }, setting(4, prng.int(100)));
    for (let j = prng.int(30); j > 0; j--) {
      const bytes = prng.pick(seeds).slice();
      for (let k = prng.int(3); k > 0; k--) bytes[prng.int(bytes.length)] = prng.next();
      if (prng.chance(0.3)) bytes[8] = prng.int(12); // A stream of low number.
      if (prng.chance(0.2)) bench.send(prng.bytes(prng.int(30)));
      const cut = prng.int(bytes.length);
      bench.send(bytes.slice(0, cut));
      bench.send(bytes.slice(cut));
      if (bench.handler.waiting.length > 0 && prng.chance(0.5)) bench.handler.answer();
    }
    bench.read(); // Every frame written is whole and well-formed.
    if (!bench.socket.ended) whole++;
    bench.connection.onClose();
    while (bench.handler.waiting.length > 0) bench.handler.answer();
  }
  assert.ok(whole > 0, "some last to their end");
});
