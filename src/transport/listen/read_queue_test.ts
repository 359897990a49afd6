// Goal: nobody who sends without waiting keeps the others from being read. Method: slices on a clock
// and an event loop of the test's own; all that happens is noted in its order.
import { concat } from "../../bytes/mod.ts";
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { DnsStreams } from "./dns_streams.ts";
import { REFUSALS_PER_SECOND } from "./over_limit.ts";
import { Flow } from "./flow.ts";
import type { Sender } from "./sender.ts";
import type { HttpHandler } from "./http.ts";
import { FrameType, PREFACE } from "./http2/frames.ts";
import { HttpsServer } from "./https.ts";
import { frame, OK } from "./fakes.ts";
import { CHUNK_UNITS, type Reader, ReadQueue, SLICE_UNITS, TURN_UNITS } from "./read_queue.ts";
import { SharedBounds } from "./shared_bounds.ts";

const none = { permissions: "none" } as const;

/** What happens, in its order: names with the units spent under them, and looks at the others. */
class Bench {
  readonly events: string[] = [];
  readonly reads: ReadQueue;
  nowMs = 0;
  #callbacks: (() => void)[] = [];

  constructor() {
    this.reads = new ReadQueue({
      nowMs: () => this.nowMs,
      later: (callback) => this.#callbacks.push(callback),
    });
    this.reads.between = () => this.events.push("udp");
  }

  /** The event loop goes round once; returns what happened. */
  goRound(): string[] {
    this.events.length = 0;
    for (const callback of this.#callbacks.splice(0)) callback();
    return [...this.events];
  }

  /** Somebody who has so many messages to read. */
  reader(name: string, messages: number): Reader & { paused: boolean } {
    const reader = {
      paused: false,
      readOn: () => {
        let read = 0;
        let isLeft = true;
        while (messages > 0 && isLeft) {
          messages--;
          read++;
          isLeft = this.reads.spend(1);
        }
        this.events.push(`${name} ${read}`);
        return messages > 0;
      },
      pause: () => {
        reader.paused = true;
      },
    };
    return reader;
  }
}

/** A slice but for the one unit of looking. */
const SLICE = SLICE_UNITS - 1;

Deno.test("ReadQueue looks at the others between two slices of a flood", none, () => {
  const bench = new Bench();
  const flood = bench.reader("flood", 10 * SLICE);
  bench.reads.take(flood, CHUNK_UNITS);
  assert.deepEqual(bench.events, [`flood ${SLICE}`, "udp"]);
  assert.ok(flood.paused);
  const slices = TURN_UNITS / SLICE_UNITS;
  const expected = Array.from({ length: slices }, () => [`flood ${SLICE}`, "udp"]).flat();
  assert.deepEqual(bench.goRound(), expected);
  assert.deepEqual(bench.goRound(), [`flood ${SLICE}`, "udp"], "the last of ten");
  assert.deepEqual(bench.goRound(), []);
});

Deno.test(
  "ReadQueue has a hundred floods share one turn, and each its slice in order",
  none,
  () => {
    const bench = new Bench();
    for (let i = 0; i < 100; i++) bench.reads.take(bench.reader(`${i}`, 2 * SLICE), CHUNK_UNITS);
    const slices = () => bench.events.filter((event) => event !== "udp");
    const atOnce = slices().length;
    assert.ok(atOnce <= TURN_UNITS / SLICE_UNITS, `${atOnce} at once`);
    const longest = bench.events.join(" ").split("udp").map((part) =>
      part.trim().split(" ").length
    );
    assert.ok(Math.max(...longest) <= 2, "one slice between two looks at the others");
    const seen = [...slices()];
    for (let round = 0; bench.reads.waiting > 0; round++) {
      assert.ok(round < 100, "it comes to an end");
      const before = bench.reads.waiting;
      bench.goRound();
      assert.ok(slices().length <= TURN_UNITS / SLICE_UNITS && before > 0);
      seen.push(...slices());
    }
    const names = seen.map((event) => event.split(" ")[0]);
    assert.deepEqual(
      names.toSorted(),
      [...Array(100).keys(), ...Array(100).keys()].map(String).sort(),
    );
    const line = names.slice(atOnce);
    assert.equal(new Set(line.slice(0, 100)).size, 100, "nobody twice before all had a slice");
  },
);

Deno.test("ReadQueue ends a slice that takes longer than it should", none, () => {
  const bench = new Bench();
  let read = 0;
  bench.reads.take({
    readOn: () => {
      do {
        read++;
        bench.nowMs += 1;
      } while (bench.reads.spend(1));
      return false;
    },
    pause: () => {},
  }, CHUNK_UNITS);
  assert.ok(read < SLICE_UNITS / 2, `${read}`);
  assert.deepEqual(bench.events, ["udp"]);
});

Deno.test("ReadQueue counts chunks in which there is nothing", none, () => {
  const bench = new Bench();
  const dripping = bench.reader("drip", 0);
  const chunks = SLICE_UNITS / CHUNK_UNITS;
  for (let i = 0; i < chunks; i++) bench.reads.take(dripping, CHUNK_UNITS);
  assert.ok(bench.events.includes("udp"));
  for (let i = 0; i < TURN_UNITS; i++) bench.reads.take(dripping, CHUNK_UNITS);
  assert.ok(dripping.paused, "it is not read on before the event loop has gone round");
});

Deno.test(
  "ReadQueue begins nobody's slice within another one, nor within a look at the others",
  none,
  () => {
    const bench = new Bench();
    const late = bench.reader("late", 1);
    bench.reads.between = () => {
      bench.events.push("udp");
      bench.reads.take(late, CHUNK_UNITS);
    };
    bench.reads.take(bench.reader("flood", SLICE), CHUNK_UNITS);
    assert.deepEqual(bench.events, [`flood ${SLICE}`, "udp"]);
    assert.deepEqual(bench.goRound(), ["late 1"]);
  },
);

/** A socket that hands over all it has while it flows, as the runtime does. */
class FakeSocket extends EventEmitter {
  /** Whoever is at the other end takes nothing. */
  isDeaf = false;
  writableLength = 0;
  destroyed = false;
  readonly readableLength = 0;
  paused = false;

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  write({ length }: Uint8Array): void {
    if (this.isDeaf) this.writableLength += length;
  }

  end(): void {}

  destroy(): void {
    this.destroyed = true;
    this.writableLength = 0;
  }
}

const SENDER: Sender = { address: "192.0.2.1", network: "192.0.2.1", touch: () => {} };
const LIMITS = { queriesMax: 128, idleMs: 10_000, unreadBytesMax: 65_536 };

function streamOf(bench: Bench, onMessage: (overLimit: () => void) => void) {
  const streams = new DnsStreams(
    {
      onOpen: () => {},
      onMessage: (stream) => {
        onMessage(() => stream.overLimit());
        return false;
      },
    },
    LIMITS,
    "bytes",
    new SharedBounds(bench.reads),
  );
  const socket = new FakeSocket();
  streams.add(socket as unknown as Socket, new Flow(socket as unknown as Socket), SENDER, null);
  return { socket, close: () => streams.close() };
}

/** So many empty messages. */
const flood = (messages: number) => new Uint8Array(2 * messages);

Deno.test(
  "a connection that pipelines is paused behind each slice, and UDP comes before its next",
  none,
  () => {
    const bench = new Bench();
    let queries = 0;
    bench.reads.between = () => bench.events.push(`udp after ${queries}`);
    const { socket, close } = streamOf(bench, () => queries++);
    socket.emit("data", flood(3 * SLICE));
    assert.deepEqual(bench.events, [`udp after ${SLICE}`]);
    assert.ok(socket.paused);
    assert.deepEqual(bench.goRound(), [`udp after ${2 * SLICE}`, `udp after ${3 * SLICE}`]);
    bench.goRound();
    assert.equal(queries, 3 * SLICE);
    assert.equal(socket.paused, false);
    close();
  },
);

Deno.test("who is far over the rate limit is not read until the second is over", none, async () => {
  const bench = new Bench();
  let queries = 0;
  const { socket, close } = streamOf(bench, (overLimit) => {
    queries++;
    overLimit();
  });
  socket.emit("data", flood(1_000));
  for (let i = 0; i < 20; i++) bench.goRound();
  assert.ok(queries >= REFUSALS_PER_SECOND && queries < REFUSALS_PER_SECOND + SLICE_UNITS);
  assert.ok(socket.paused);
  // Its time comes by itself.
  const before = queries;
  while (queries === before) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    bench.goRound();
  }
  close();
});

Deno.test(
  "a flood of HTTP/2 is paused behind each slice, whatever its frames are",
  none,
  async () => {
    const bench = new Bench();
    const handler: HttpHandler = {
      onRequest: (request) => request.respond(OK, -1, new Uint8Array(0), 0, 0),
      onRejected: () => bench.events.push("rejected"),
    };
    const limits = { requestsMax: 8, idleMs: 10_000, requestMs: 5_000, unreadBytesMax: 65_536 };
    const https = new HttpsServer(handler, limits, new SharedBounds(bench.reads));
    const socket = new FakeSocket();
    const secure = socket as unknown as Socket;
    https.take({
      socket: secure,
      flow: new Flow(secure),
      sender: SENDER,
      serverName: null,
      protocol: "h2",
    });
    const pings = Array.from({ length: 500 }, () => frame(FrameType.Ping, 0, 0, new Uint8Array(8)));
    socket.emit("data", concat(PREFACE, frame(FrameType.Settings, 0, 0), ...pings));
    assert.deepEqual(bench.events, ["udp"], "none of it is too much yet");
    assert.ok(socket.paused);
    const happened: string[] = [];
    for (let i = 0; socket.paused && i < 20; i++) happened.push(...bench.goRound());
    assert.ok(happened.filter((event) => event === "udp").length >= 3, happened.join());
    socket.emit("close");
    await https.close();
  },
);

Deno.test(
  "answers that clients do not take are bounded over all connections together",
  none,
  () => {
    const bench = new Bench();
    const bounds = new SharedBounds(bench.reads, undefined, 100_000);
    const answer = new Uint8Array(1_000);
    const streams = new DnsStreams(
      {
        onOpen: () => {},
        onMessage: (stream) => {
          stream.send(answer, 0, answer.length);
          return false;
        },
      },
      LIMITS,
      "bytes",
      bounds,
    );
    const open = (network: string, isDeaf: boolean) => {
      const socket = Object.assign(new FakeSocket(), { isDeaf });
      const secure = socket as unknown as Socket;
      streams.add(secure, new Flow(secure), { ...SENDER, network }, null);
      return socket;
    };
    const deaf = Array.from({ length: 30 }, () => open("192.0.2.1", true));
    const [honest, slow] = [open("192.0.2.2", false), open("192.0.2.3", true)];
    for (const socket of [slow, ...deaf, honest]) {
      socket.emit("data", flood(10));
      while (bench.reads.waiting > 0) bench.goRound();
    }
    assert.deepEqual([honest.destroyed, slow.destroyed], [false, false]);
    assert.ok(bounds.unread.cutOff > 0);
    const held = deaf.reduce((sum, { writableLength }) => sum + writableLength, 0);
    assert.ok(held <= 100_000, `${held} bytes`);
    streams.close();
  },
);
