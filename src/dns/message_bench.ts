import {
  checkRdata,
  decodeMessage,
  expandName,
  MessageWriter,
  parseName,
  Qclass,
  QR_BIT,
  Qtype,
  RecordView,
  Section,
  SectionWalk,
  Walk,
} from "./mod.ts";

const ANSWERS = 4;

const www = parseName("www.example") ?? new Uint8Array(1);
const address = Uint8Array.of(192, 0, 2, 1);
const writer = new MessageWriter();

function write(target: Uint8Array): void {
  writer.start(target, 0, target.length, 1, QR_BIT);
  writer.question(www, Qtype.A);
  for (let i = 0; i < ANSWERS; i++) {
    writer.record(Section.Answer, www, Qtype.A, Qclass.IN, 300, address);
  }
  writer.opt({ payload: 1232, extendedRcode: 0, version: 0, dnssecOk: false });
}

const target = new Uint8Array(1232);
write(target);
const packet = writer.bytes().slice();
const copy = new Uint8Array(packet.length);
const [walk, record, name] = [new SectionWalk(), new RecordView(), new Uint8Array(255)];
const bench = { group: "a response of four addresses", permissions: "none" } as const;

Deno.bench("copy it", { ...bench, baseline: true }, () => copy.set(packet));

Deno.bench("SectionWalk", bench, () => {
  walk.start(packet, packet.length);
  while (walk.next(record) === Walk.Record);
});

Deno.bench("SectionWalk, checkRdata and expandName", bench, () => {
  walk.start(packet, packet.length);
  while (walk.next(record) === Walk.Record) {
    checkRdata(packet, record.type, record.rdataOffset, record.rdataLength);
    expandName(packet, record.ownerOffset, name, 0);
  }
});

Deno.bench("decodeMessage", bench, () => void decodeMessage(packet));

Deno.bench("MessageWriter", bench, () => write(target));
