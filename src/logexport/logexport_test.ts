import assert from "node:assert/strict";
import { decodeMessage } from "../dns/mod.ts";
import {
  ExportFigure,
  figuresMemory,
  queueFigures,
  queueMemory,
  QueueWriter,
} from "../logqueue/mod.ts";
import type { StoredEntry } from "../querylog/entry.ts";
import { type FakeQuery, note, responseTo } from "../querylog/fakes.ts";
import { Fields } from "../../tests/e2e/collector.ts";
import { clientText, kindText } from "../querylog/entry.ts";
import type { Connection } from "./dial.ts";
import { DnstapEncoder } from "./dnstap.ts";
import { openFrameStream } from "./frame_streams.ts";
import { type Receiver, Sender, type Session } from "./sender.ts";

const none = { permissions: "none" } as const;
/** What a test waits for is over sooner. */
const LIMITS = { handshakeMs: 50, batchMs: 50, farewellMs: 50 };

/** A receiver that says one thing, and takes so many bytes. */
function fakeConnection(says: Uint8Array | "silence", takesBytes = Infinity) {
  const written: number[] = [];
  const never = Promise.withResolvers<null>();
  let [left, room, isClosed] = [says === "silence" ? new Uint8Array(0) : says, takesBytes, false];
  const connection: Connection & { readonly isClosed: () => boolean } = {
    read: (target) => {
      if (left.length === 0) return says === "silence" ? never.promise : Promise.resolve(null);
      const part = left.subarray(0, target.length);
      left = left.subarray(part.length);
      target.set(part);
      return Promise.resolve(part.length);
    },
    write: (bytes) => {
      if (isClosed) return Promise.reject(new Error("it is closed"));
      if (room <= 0) return never.promise as Promise<never>;
      const taken = Math.min(bytes.length, room);
      room -= taken;
      written.push(...bytes.subarray(0, taken));
      return Promise.resolve(taken);
    },
    close: () => {
      isClosed = true;
      never.resolve(null);
    },
    isClosed: () => isClosed,
  };
  return connection;
}

function control(type: number, contentType: string): Uint8Array {
  const text = new TextEncoder().encode(contentType);
  const frame = new Uint8Array(20 + text.length);
  const view = new DataView(frame.buffer);
  for (const [i, word] of [0, 12 + text.length, type, 1, text.length].entries()) {
    view.setUint32(4 * i, word);
  }
  frame.set(text, 20);
  return frame;
}

const TAP = "protobuf:dnstap.Dnstap";
const ACCEPT = 1;

Deno.test("openFrameStream() begins nothing with who is no receiver of dnstap", none, async (t) => {
  const long = new Uint8Array(600);
  new DataView(long.buffer).setUint32(4, 592);
  const short = control(ACCEPT, TAP).slice(0, 20);
  const cases: readonly (readonly [string, Uint8Array | "silence", RegExp])[] = [
    ["it says nothing", "silence", /the handshake took longer than 50 ms/],
    ["it closes at once", new Uint8Array(0), /it closed the connection/],
    ["it speaks HTTP", new TextEncoder().encode("HTTP/1.1 400 No\r\n\r\n"), /no control frame/],
    ["another type", control(ACCEPT, "protobuf:other"), /it takes no protobuf:dnstap.Dnstap/],
    ["no ACCEPT", control(2, TAP), /no ACCEPT/],
    ["a frame that is too long", long, /no control frame/],
    ["half a frame", short, /it closed the connection/],
  ];
  for (const [name, says, message] of cases) {
    await t.step(name, async () => {
      const connection = fakeConnection(says);
      await assert.rejects(openFrameStream(connection, LIMITS), message);
      assert.ok(connection.isClosed());
    });
  }
  await t.step("one that never reads, in the handshake and behind it", async () => {
    await assert.rejects(openFrameStream(fakeConnection("silence", 0), LIMITS), /longer than/);
    const ready = control(4, TAP).length + control(2, TAP).length;
    const connection = fakeConnection(control(ACCEPT, TAP), ready);
    // Whoever says no more has not ended the stream: nothing is read behind ACCEPT.
    const stream = await openFrameStream({
      ...connection,
      read: (target) => connection.read(target).then((n) => n ?? new Promise<null>(() => {})),
    }, LIMITS);
    await assert.rejects(stream.send([new Uint8Array(10)]), /a batch took longer than 50 ms/);
    assert.ok(connection.isClosed());
  });
});

/** A sender with the writing end of its queue, over receivers that a test makes. */
class Running {
  readonly queue = queueMemory(16_384);
  readonly writer = new QueueWriter(this.queue);
  readonly memory = figuresMemory();
  readonly pausesMs: number[] = [];
  readonly sent: string[] = [];
  asked = 0;
  /** What becomes of a try; the session takes it if nothing is thrown. */
  try: (names: readonly string[]) => void = () => {};
  open: () => void = () => {};
  readonly sender: Sender<string>;

  constructor() {
    const receiver: Receiver<string> = {
      open: () => {
        this.open();
        const session: Session<string> = {
          ended: new Promise(() => {}),
          send: async (names) => {
            await Promise.resolve();
            this.try(names);
            this.sent.push(...names);
          },
          close: () => Promise.resolve(),
        };
        return Promise.resolve(session);
      },
      itemOf: ({ name }) => name,
    };
    this.sender = new Sender({
      queue: this.queue,
      figures: this.memory,
      upstreams: [],
      receiver,
      fields: { exporter: "dnstap", to: "test" },
      ports: {
        monotonicMs: () => 0,
        chance: () => 0.5,
        pause: (ms) => {
          this.pausesMs.push(ms);
          return Promise.resolve();
        },
        onFailure: () => {},
      },
    });
  }

  ask(count: number, query: FakeQuery = {}): void {
    for (let i = 0; i < count; i++) {
      note(this.writer, { name: `n${this.asked++}.example`, ...query });
    }
  }

  figure(which: number): number {
    return new Float64Array(this.memory)[which];
  }

  get dropped(): number {
    return queueFigures(this.queue).dropped.reduce((sum, count) => sum + count, 0);
  }
}

Deno.test(
  "Sender sends in order, drops and counts what finds no room, and pauses ever longer",
  none,
  async () => {
    const bench = new Running();
    bench.ask(500);
    assert.ok(bench.dropped > 300, "the queue is small");
    let failures = 0;
    bench.open = () => {
      if (failures++ < 10) throw new Error("refused");
    };
    const stopped = Promise.withResolvers<void>();
    bench.try = () => stopped.resolve();
    const run = bench.sender.run();
    await stopped.promise;
    bench.sender.stop(1_000);
    await run;
    assert.equal(bench.sent.length + bench.dropped, 500);
    const numbers = bench.sent.map((name) => Number(/^n(\d+)/.exec(name)![1]));
    assert.deepEqual(numbers, numbers.toSorted((a, b) => a - b));
    assert.deepEqual(bench.pausesMs.slice(0, 10), [
      ...[375, 750, 1_500, 3_000, 6_000, 12_000, 22_500, 22_500, 22_500, 22_500],
    ]);
    assert.equal(bench.figure(ExportFigure.Sent), bench.sent.length);
    assert.equal(bench.figure(ExportFigure.Failures), 10);
    assert.equal(bench.figure(ExportFigure.Failing), 0);
  },
);

Deno.test("Sender lets a batch go that nobody takes, and sends the next", none, async () => {
  const bench = new Running();
  bench.ask(3, { name: "poison.example" });
  let tries = 0;
  const stopped = Promise.withResolvers<void>();
  bench.try = (names) => {
    if (names.includes("poison.example")) {
      if (++tries === 8) queueMicrotask(() => bench.ask(1));
      throw new Error("it answered 400");
    }
    stopped.resolve();
  };
  const run = bench.sender.run();
  await stopped.promise;
  bench.sender.stop(1_000);
  await run;
  assert.equal(tries, 8);
  assert.equal(bench.sent.length, 1);
  assert.equal(bench.figure(ExportFigure.Lost), 3);
});

function stored(query: Partial<StoredEntry> = {}): StoredEntry {
  return {
    timeMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    durationUs: 1_500,
    outcome: 0,
    name: "www.example",
    client: clientText("2001:db8::7", "", "gr_0000000000000000", ""),
    kind: kindText("A", "NOERROR", 0, false, 0, "", ""),
    rule: "",
    answers: "",
    ...query,
  };
}

Deno.test(
  "DnstapEncoder tells times, addresses and protocols, and cuts between records",
  none,
  async (t) => {
    const encoder = new DnstapEncoder({ identity: "attic", version: "svc 1", isAnonymized: false });
    const message = (entry: StoredEntry, response: Uint8Array) =>
      new Fields(encoder.encode(entry, response)).messages(14)[0];
    const answers = Array.from({ length: 40 }, (_, i) => `192.0.2.${i}`);
    await t.step("times and IPv6", () => {
      const told = message(stored(), responseTo({}));
      assert.equal(told.integer(2), 2);
      assert.equal(told.bytes(4).length, 16);
      assert.deepEqual([told.integer(8), told.integer(9)], [1_767_323_045, 676_500_000]);
      assert.deepEqual([told.integer(12), told.integer(13)], [1_767_323_045, 678_000_000]);
    });
    await t.step("protocols", () => {
      const numbers = [0, 1, 2, 3, 4, 5].map((protocol) => {
        const kind = kindText("A", "NOERROR", protocol, false, 0, "", "");
        return message(stored({ kind }), responseTo({})).integer(3);
      });
      assert.deepEqual(numbers, [1, 2, 3, 4, 7, 4]);
    });
    await t.step("an address that nobody has", () => {
      const told = message(stored({ client: clientText("", "", "", "") }), responseTo({}));
      assert.ok(!told.has(2) && !told.has(4));
    });
    await t.step("a whole response", () => {
      const whole = responseTo({ answers: answers.slice(0, 5) });
      assert.deepEqual(message(stored(), whole).bytes(14), whole);
    });
    await t.step("a long response", () => {
      const cut = message(stored(), responseTo({ answers }).slice(0, 512)).bytes(14);
      const decoded = decodeMessage(cut);
      assert.ok(decoded !== null && decoded.tc);
      assert.ok(decoded.answers.length > 10 && decoded.answers.length < 40);
      assert.deepEqual(
        decoded.answers.map(({ data }) => data),
        answers.slice(0, decoded.answers.length),
      );
    });
  },
);
