import assert from "node:assert/strict";
import { decodeMessage, encodeQuery, Qtype, Rcode } from "../dns/mod.ts";
import { answerProof, proofZone } from "./proof_zone.ts";

const ZONE = proofZone("*.dns.example");

function ask(name: string, type: number, change: (packet: Uint8Array) => void = () => {}): string {
  const packet = encodeQuery(name, type, { id: 7, edns: { dnssecOk: true } });
  change(packet);
  const answer = answerProof(packet, [ZONE], () => ["proof-1", "proof-2"]);
  const message = answer === null ? null : decodeMessage(answer);
  if (message === null) return "nothing";
  assert.equal(message.id, 7);
  const rcode = Object.entries(Rcode).find(([, code]) => code === message.rcode)?.[0];
  const [answers, authorities] = [message.answers, message.authorities].map((records) =>
    records.map(({ name, type, data }) => `${name} ${type} ${data}`)
  );
  const flags = (message.aa ? " aa" : "") + (message.ra ? " ra" : "");
  return [`${rcode}${flags}`, ...answers, ...authorities.map((one) => `(${one})`)].join("; ");
}

const SOA = `${ZONE} 6 ${ZONE} hostmaster.${ZONE} 1 3600 600 86400 1`;
const CASES: readonly (readonly [string, number, string])[] = [
  [ZONE, Qtype.TXT, `NoError aa; ${ZONE} 16 "proof-1"; ${ZONE} 16 "proof-2"`],
  ["_ACME-challenge.DNS.example", Qtype.A, `NoError aa; (${SOA})`],
  [ZONE, Qtype.NS, `NoError aa; (${SOA})`],
  [ZONE, Qtype.SOA, `NoError aa; ${SOA}`],
  [ZONE, Qtype.ANY, `NoError aa; (${SOA})`],
  [`a.${ZONE}`, Qtype.TXT, `NXDomain aa; (${SOA})`],
  ["dns.example", Qtype.TXT, "Refused"],
  ["example", Qtype.A, "Refused"],
  [".", Qtype.NS, "Refused"],
];

Deno.test(
  "answerProof() answers its zones and nothing else",
  { permissions: "none" },
  async (t) => {
    assert.equal(ZONE, "_acme-challenge.dns.example");
    for (const [name, type, want] of CASES) {
      await t.step(`${name} ${type}`, () => assert.equal(ask(name, type), want));
    }
  },
);

Deno.test(
  "answerProof() takes no response, no update and no rubbish",
  { permissions: "none" },
  () => {
    assert.equal(ask(ZONE, Qtype.TXT, (packet) => packet[2] |= 0x80), "nothing");
    assert.match(ask(ZONE, Qtype.TXT, (packet) => packet[2] |= 5 << 3), /^NotImp/);
    assert.equal(ask(ZONE, Qtype.TXT, (packet) => packet[5] = 2), "nothing");
    const packet = encodeQuery(ZONE, Qtype.TXT, { id: 7, edns: {} });
    for (let seed = 1; seed < 3_000; seed++) {
      const broken = packet.slice(0, 1 + seed * 7 % packet.length);
      broken[seed * 31 % broken.length] ^= seed & 0xff;
      const answer = answerProof(broken, [ZONE], () => ["x"]);
      assert.ok(answer === null || decodeMessage(answer)?.response === true, `${seed}`);
    }
  },
);
