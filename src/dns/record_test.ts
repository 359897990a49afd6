import assert from "node:assert/strict";
import { decodeHex } from "../bytes/mod.ts";
import { readRecord, RecordView, SectionWalk, skipQuestion, Walk } from "./mod.ts";

const none = { permissions: "none" } as const;

function bytes(hex: string): Uint8Array {
  const decoded = decodeHex(hex.replaceAll(" ", ""));
  assert.notEqual(decoded, null, hex);
  return decoded ?? new Uint8Array(0);
}

const QUESTION = "01 61 00 0001 0001";
const RECORD = "c00c 0001 0001 ffffffff 0004 c0000201";

function header(...counts: number[]): string {
  return "0000 8180" + counts.map((count) => count.toString(16).padStart(4, "0")).join("");
}

Deno.test("readRecord() reads fixed fields and finds RDATA", none, () => {
  const packet = bytes(header(1, 1, 0, 0) + QUESTION + RECORD);
  const view = new RecordView();
  assert.equal(readRecord(packet, 19, packet.length, view), packet.length);
  assert.deepEqual({ ...view }, {
    ownerOffset: 19,
    type: 1,
    cls: 1,
    ttl: 0xffffffff,
    rdataOffset: 31,
    rdataLength: 4,
    end: 35,
  });
});

Deno.test("readRecord() and skipQuestion() refuse what is cut at any byte", none, () => {
  const packet = bytes(header(1, 1, 0, 0) + QUESTION + RECORD);
  const view = new RecordView();
  for (let end = 19; end < packet.length; end++) {
    assert.equal(readRecord(packet, 19, end, view), -1, `record, end ${end}`);
  }
  assert.equal(view.end, 0);
  assert.equal(skipQuestion(packet, 12, 19), 19);
  for (let end = 12; end < 19; end++) assert.equal(skipQuestion(packet, 12, end), -1);
});

Deno.test("SectionWalk meets each record in its section", none, () => {
  const counts: [number, number, number][] = [[0, 0, 0], [2, 1, 3], [0, 0, 2], [1, 0, 1]];
  const [walk, view] = [new SectionWalk(), new RecordView()];
  for (const [answers, authorities, additionals] of counts) {
    const total = answers + authorities + additionals;
    const packet = bytes(
      header(1, answers, authorities, additionals) + QUESTION + RECORD.repeat(total) + "ffff",
    );
    assert.equal(walk.start(packet, packet.length), true);
    const met = [0, 0, 0];
    let step: Walk = walk.next(view);
    for (; step === Walk.Record; step = walk.next(view)) met[walk.section]++;
    assert.equal(step, Walk.End);
    assert.deepEqual(met, [answers, authorities, additionals]);
    assert.equal(walk.offset, packet.length - 2);
    assert.equal(walk.next(view), Walk.End);
  }
});

Deno.test("SectionWalk stops where a count promises too much", none, () => {
  const rows: [hex: string, records: number, what: string][] = [
    ["", -1, "nothing"],
    [header(0, 0, 0, 0).slice(0, -2), -1, "header cut"],
    [header(1, 0, 0, 0), -1, "question missing"],
    [header(0xffff, 0, 0, 0) + QUESTION.repeat(3), -1, "questions missing"],
    [header(1, 0xffff, 0, 0) + QUESTION + RECORD, 1, "answers missing"],
    [header(1, 0, 0, 0xffff) + QUESTION + RECORD.repeat(2), 2, "additionals missing"],
    [header(1, 1, 0, 0) + QUESTION + RECORD.slice(0, -2), 0, "RDATA cut"],
  ];
  const [walk, view] = [new SectionWalk(), new RecordView()];
  for (const [hex, records, what] of rows) {
    const packet = bytes(hex);
    const started = walk.start(packet, packet.length);
    assert.equal(started, records >= 0, what);
    let met = 0;
    let step: Walk = Walk.Malformed;
    while (started && (step = walk.next(view)) === Walk.Record) met++;
    assert.equal(step, Walk.Malformed, what);
    assert.equal(met, Math.max(records, 0), what);
  }
});
