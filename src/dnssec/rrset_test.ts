import assert from "node:assert/strict";
import { encodeResponse, parseRecord, wireName } from "../../tests/replay/records.ts";
import { setU32 } from "../bytes/mod.ts";
import { formatName, formatRdata, Qtype, qtypeName } from "../dns/mod.ts";
import { readSections, type RrSet } from "./rrset.ts";

const none = { permissions: "none" } as const;

const QUESTION = { name: wireName("www.example."), type: Qtype.A };

const packetOf = (answer: readonly string[], authority: readonly string[] = []) =>
  encodeResponse(QUESTION, 0, {
    answer: answer.map(parseRecord),
    authority: authority.map(parseRecord),
  });

function show({ owner, type, ttl, rdatas, signatures }: RrSet): string {
  const data = rdatas.map((rdata) => formatRdata(rdata, type, 0, rdata.length));
  return `${formatName(owner)} ${ttl} ${qtypeName(type)} ${data.join(", ")} +${signatures.length}`;
}

const signed = (type: string) => `www.example. 60 RRSIG ${type} 8 2 60 1 1 1 example. QQ==`;

Deno.test(
  "readSections() groups records, in any order and either case, with their signatures",
  none,
  () => {
    const packet = packetOf(
      [
        signed("A"),
        "www.example. 300 A 192.0.2.1",
        "www.example. 300 MX 10 mail.example.",
        "WWW.Example. 200 A 192.0.2.2",
        signed("A"),
        signed("TXT"),
      ],
      [signed("MX"), "example. 60 NS ns.example."],
    );
    const sections = readSections(packet);
    assert(sections !== null);
    assert.deepEqual(sections.answer.map(show), [
      "www.example 200 A 192.0.2.1, 192.0.2.2 +2",
      // Uncompressed: the packet has pointers.
      "www.example 300 MX 10 mail.example +0",
      "www.example 60 RRSIG TXT 8 2 60 19700101000001 19700101000001 1 example QQ== +0",
    ]);
    // A signature covers what is in its own section.
    assert.deepEqual(sections.authority.map(show), [
      "www.example 60 RRSIG MX 8 2 60 19700101000001 19700101000001 1 example QQ== +0",
      "example 60 NS ns.example +0",
    ]);
    assert.deepEqual(sections.additional, []);
  },
);

Deno.test("readSections() takes a TTL with its first bit set for zero", none, () => {
  const packet = packetOf(["www.example. 300 A 192.0.2.1"]);
  setU32(packet, packet.length - 10, 0x8000_0001);
  assert.equal(readSections(packet)!.answer[0].ttl, 0);
});

Deno.test("readSections() keeps RDATA without the form of its type as it is", none, () => {
  const packet = packetOf(["www.example. DNSKEY \\# 2 0101", "www.example. NS \\# 1 ff"]);
  const sections = readSections(packet)!;
  assert.deepEqual(sections.answer.map(({ rdatas }) => rdatas[0]), [
    Uint8Array.of(1, 1),
    Uint8Array.of(0xff),
  ]);
});

Deno.test("readSections() refuses a message that is cut off anywhere", none, () => {
  const packet = packetOf(["www.example. 300 A 192.0.2.1", "www.example. 300 MX 10 a.b."]);
  assert(readSections(packet) !== null);
  for (let end = 0; end < packet.length; end++) assert.equal(readSections(packet, end), null);
});
