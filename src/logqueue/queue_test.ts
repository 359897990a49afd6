import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { InvariantError } from "../errors.ts";
import { RecordAt } from "./layout.ts";
import {
  NO_RECORD,
  NO_ROOM,
  queueFigures,
  queueMemory,
  QueueReader,
  QueueWriter,
} from "./queue.ts";

const none = { permissions: "none" } as const;
const HEAD_WORDS = RecordAt.End;
const WORDS_MAX = 150;

/** Writes a record of so many words that holds `value` in each but the first. */
function write(writer: QueueWriter, value: number, words: number): boolean {
  const at = writer.admits() ? writer.begin(words * 4) : NO_ROOM;
  if (at === NO_ROOM) {
    writer.drop(value % 4);
    return false;
  }
  writer.words.fill(value, at, at + words);
  writer.commit(words * 4);
  return true;
}

/** The values of all records up to the mark. */
function readAll(reader: QueueReader): number[] {
  const target = new Uint32Array(1_024);
  const values: number[] = [];
  for (let bytes = reader.next(target); bytes !== NO_RECORD; bytes = reader.next(target)) {
    const body = target.subarray(1, bytes / 4);
    assert.ok(body.every((word) => word === body[0]), `record ${values.length} is whole`);
    values.push(body[0]);
  }
  return values;
}

Deno.test("QueueWriter and QueueReader agree with a list, whatever the sizes", none, () => {
  const prng = new Prng(seedFromEnv());
  const memory = queueMemory(4_096);
  const [writer, reader] = [new QueueWriter(memory), new QueueReader(memory)];
  const model: number[] = [];
  const dropped = [0, 0, 0, 0];
  let [value, usedWords] = [0, 0];
  for (let step = 0; step < 20_000; step++) {
    if (prng.chance(0.6)) {
      value++;
      const words = HEAD_WORDS + prng.int(prng.chance(0.1) ? WORDS_MAX : 30);
      if (write(writer, value, words)) {
        model.push(value);
        usedWords += words;
      } else {
        dropped[value % 4]++;
        // An end that is skipped is shorter than the record that did not fit there.
        const lost = 2 * (HEAD_WORDS + WORDS_MAX);
        assert.ok((usedWords + words + lost) * 4 > 3 / 4 * 4_096, "only a nearly full queue drops");
      }
    } else {
      reader.mark();
      const read = readAll(reader);
      assert.deepEqual(read, model);
      if (prng.chance(0.95)) {
        reader.rewind();
      } else {
        reader.release();
        model.length = usedWords = 0;
      }
    }
    const figures = queueFigures(memory);
    assert.equal(figures.waiting, model.length);
    assert.deepEqual(figures.dropped.slice(0, 4), dropped);
  }
  assert.ok(dropped.every((count) => count > 0) && value > 10_000);
});

Deno.test("QueueWriter leaves out as much of a client that asks at a bad time", none, () => {
  const memory = queueMemory(64 * 1_024);
  const [writer, reader] = [new QueueWriter(memory), new QueueReader(memory)];
  const [TAKEN, COME] = [64, 512];
  const asked = [0, 0];
  const kept = [0, 0];
  const target = new Uint32Array(1_024);
  for (let i = 0; i < 200 * COME; i++) {
    // One asks just when there is room again, the other later.
    const client = i % COME < TAKEN ? 0 : 1;
    asked[client]++;
    write(writer, client, HEAD_WORDS);
    if ((i + 1) % COME > 0) continue;
    reader.mark();
    for (let n = 0; n < TAKEN && reader.next(target) !== NO_RECORD; n++) kept[target[1]]++;
    reader.release();
  }
  const shares = kept.map((count, client) => count / asked[client]);
  const fair = TAKEN / COME;
  for (const share of shares) assert.ok(share > fair / 2 && share < fair * 2, `${shares}`);
});

Deno.test("QueueReader reads no further than its mark", none, () => {
  const memory = queueMemory(4_096);
  const [writer, reader] = [new QueueWriter(memory), new QueueReader(memory)];
  write(writer, 1, 20);
  assert.deepEqual(readAll(reader), []);
  reader.mark();
  write(writer, 2, 20);
  assert.deepEqual(readAll(reader), [1]);
  assert.equal(reader.fill, 160 / 4_096);
  reader.release();
  assert.equal(reader.fill, 80 / 4_096);
  reader.mark();
  assert.deepEqual(readAll(reader), [2]);
});

Deno.test("a new writer or reader goes on where the former one ended", none, () => {
  const memory = queueMemory(4_096);
  const writer = new QueueWriter(memory);
  for (const value of [1, 2, 3]) write(writer, value, 40);
  writer.words.fill(9, writer.begin(160)); // Crashes before it commits.
  const next = new QueueWriter(memory);
  const reader = new QueueReader(memory);
  reader.mark();
  assert.deepEqual(readAll(reader), [1, 2, 3]); // And crashes before it gives them back.
  write(next, 4, 40);
  const second = new QueueReader(memory);
  second.mark();
  assert.deepEqual(readAll(second), [1, 2, 3, 4]);
  assert.deepEqual(second.takeDropped(), new Array(16).fill(0));
  for (const kind of [3, 3, 0]) next.drop(kind);
  assert.deepEqual(second.takeDropped().slice(0, 5), [1, 0, 0, 2, 0]);
  next.drop(0);
  assert.deepEqual(new QueueReader(memory).takeDropped().slice(0, 5), [1, 0, 0, 0, 0]);
  second.release();
  const { waiting, dropped } = queueFigures(memory);
  assert.deepEqual([waiting, dropped.slice(0, 4)], [0, [2, 0, 0, 2]]);
});

Deno.test("QueueReader refuses what is no record, and gives it up", none, () => {
  for (const length of [0, 2, 47, 8_192, 0x7fff_fffc, 0xffff_ffff]) {
    const memory = queueMemory(4_096);
    const [writer, reader] = [new QueueWriter(memory), new QueueReader(memory)];
    write(writer, 1, 20);
    write(writer, 2, 20);
    new Uint32Array(memory, 512)[0] = length;
    reader.mark();
    assert.throws(() => readAll(reader), InvariantError, `${length}`);
    assert.equal(reader.discard(), 2);
    write(writer, 3, 20);
    reader.mark();
    assert.deepEqual(readAll(reader), [3]);
  }
});

/** A runtime with nothing else to do does not wait for another thread's word. */
function stayAwake(): Disposable {
  const timer = setInterval(() => {}, 1_000);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

Deno.test(
  "QueueReader waits for a first record, and for as many bytes as it says",
  none,
  async () => {
    const memory = queueMemory(4_096);
    const [writer, reader] = [new QueueWriter(memory), new QueueReader(memory)];
    using _ = stayAwake();
    const events: string[] = [];
    const wait = (bytes: number) =>
      reader.waitFor(bytes).then(() => void events.push(`${bytes} bytes`));
    const turn = () => new Promise((resolve) => setTimeout(resolve));
    const first = wait(1);
    await turn();
    assert.deepEqual(events, []);
    write(writer, 1, HEAD_WORDS);
    await first;
    const second = wait(3 * HEAD_WORDS * 4);
    write(writer, 2, HEAD_WORDS);
    await turn();
    assert.deepEqual(events.splice(0), ["1 bytes"]);
    write(writer, 3, HEAD_WORDS);
    await second;
    assert.deepEqual(events.splice(0), [`${3 * HEAD_WORDS * 4} bytes`]);
    await wait(1); // They wait already.
    reader.mark();
    assert.deepEqual(readAll(reader), [1, 2, 3]);
    reader.release();
    const [former, newer] = [wait(1), wait(2)];
    await former;
    assert.deepEqual(events.splice(0), ["1 bytes", "1 bytes"]);
    reader.endWait();
    await newer;
  },
);

Deno.test("a reader is told of each record, however its wait and the writer meet", {
  permissions: { read: true },
}, async () => {
  using _ = stayAwake();
  const memory = queueMemory(4_096);
  const worker = new Worker(new URL("./queue_child.ts", import.meta.url), { type: "module" });
  const reader = new QueueReader(memory);
  const records = 20_000;
  worker.postMessage({ memory, records, isPatient: true });
  let read = 0;
  while (read < records) {
    await reader.waitFor(1); // Without a word from the writer, for ever.
    reader.mark();
    read += readAll(reader).length;
    reader.release();
  }
  assert.equal(read, records);
  worker.terminate();
});

Deno.test("queueMemory() takes powers of two only", none, () => {
  for (const bytes of [0, 2_048, 5_000, 2 ** 31]) assert.throws(() => queueMemory(bytes));
});

Deno.test({
  name: "two isolates lose and change nothing between them",
  permissions: { read: true },
  fn: async () => {
    const RECORDS = 50_000;
    const memory = queueMemory(16_384);
    const worker = new Worker(new URL("./queue_child.ts", import.meta.url), {
      type: "module",
      deno: { permissions: "none" },
    });
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    worker.onmessage = () => resolve();
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
    worker.postMessage({ memory, records: RECORDS });
    const reader = new QueueReader(memory);
    const target = new Uint32Array(1_024);
    let [last, count, isWriting] = [0, 0, true];
    const ended = done.finally(() => isWriting = false);
    for (let more = true; more;) {
      more = isWriting;
      reader.mark();
      for (let bytes = reader.next(target); bytes !== NO_RECORD; bytes = reader.next(target)) {
        const value = target[1];
        assert.ok(value > last, "in order");
        assert.equal(bytes, (HEAD_WORDS + value % 50) * 4);
        for (let i = 2; i < bytes / 4; i++) assert.equal(target[i], value);
        last = value;
        count++;
      }
      reader.release();
      await new Promise((turn) => setTimeout(turn));
    }
    await ended;
    worker.terminate();
    const { waiting, dropped } = queueFigures(memory);
    assert.equal(waiting, 0);
    assert.equal(count + dropped[0], RECORDS);
    assert.ok(count > 1_000);
  },
});
