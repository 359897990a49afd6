// Goal: answers of zones that are known not to be signed are taken at once, and no others are.
// Method: the forwarder over a signed zone with unsigned ones in it.
import assert from "node:assert/strict";
import { Rcode } from "../../dns/mod.ts";
import type { RrSet } from "../../dnssec/mod.ts";
import { DnssecState } from "../query.ts";
import { ValidationBench } from "./fakes.ts";

const none = { permissions: "none" } as const;
const SOA = "test 300 IN SOA ns.test. host.test. 1 2 3 4 60";
const { plain } = ValidationBench;

/** Two unsigned zones, whose first names were asked for. */
async function benchOf(): Promise<ValidationBench> {
  const bench = new ValidationBench();
  for (const zone of ["plain.test", "other.test"]) {
    const proof = bench.signed(`${zone} 60 IN NSEC ${zone.replace(".", "x.")}. NS RRSIG NSEC`);
    bench.said.set(`${zone} DS`, { authority: [bench.signed(SOA), proof] });
    bench.said.set(`www.${zone} A`, { answer: [plain(`www.${zone} 300 IN A 192.0.2.1`)] });
    await bench.ask(`www.${zone}`);
  }
  return bench;
}

/** Asks, and has the upstream answer within this call; says what has come by then. */
function askAtOnce(bench: ValidationBench, name: string, lines: readonly string[]): string {
  const client = bench.bench.ask(name);
  const sent = bench.bench.sent.at(-1)!;
  const records = lines.map((line) => {
    const { owner, type, ttl, rdatas } = plain(line);
    return { section: 0 as const, name: textOf(owner), type, ttl, rdata: rdatas[0] };
  });
  bench.bench.answer(sent, { flags: 0x8180 | Rcode.NoError, records });
  if (client.answer !== "") assert.equal(client.dnssec, DnssecState.Insecure);
  return client.answer;
}

function textOf(owner: Uint8Array): string {
  let text = "";
  for (let at = 0; owner[at] !== 0; at += 1 + owner[at]) {
    text += `${String.fromCharCode(...owner.subarray(at + 1, at + 1 + owner[at]))}.`;
  }
  return text.replace(/\.$/, "");
}

Deno.test(
  "UnsignedAnswers are those of known zones, aliases between them included",
  none,
  async () => {
    const bench = await benchOf();
    assert.equal(
      askAtOnce(bench, "mail.plain.test", ["mail.plain.test 300 IN A 192.0.2.2"]),
      "NOERROR rd ra; mail.plain.test 300 A 192.0.2.2",
    );
    assert.match(
      askAtOnce(bench, "a.plain.test", [
        "a.plain.test 300 IN CNAME b.other.test.",
        "b.other.test 300 IN A 192.0.2.3",
      ]),
      /192\.0\.2\.3$/,
    );
  },
);

Deno.test(
  "UnsignedAnswers are none that lead into a signed zone, or one that is not known",
  none,
  async () => {
    for (const target of ["www.test", "www.new.test"]) {
      const bench = await benchOf();
      const lines = [`a.plain.test 300 IN CNAME ${target}.`, `${target} 300 IN A 192.0.2.3`];
      assert.equal(askAtOnce(bench, "a.plain.test", lines), "", target);
    }
  },
);

Deno.test("UnsignedAnswers have no signatures, which not everybody wants", none, async () => {
  const bench = await benchOf();
  const line = "mail.plain.test 300 IN A 192.0.2.2";
  const signed: RrSet = { ...bench.signed(line) };
  bench.said.set("mail.plain.test A", { answer: [signed] });
  assert.equal(
    (await bench.ask("mail.plain.test")).answer,
    `NOERROR rd ra; ${line.replace(" IN", "")}`,
  );
});

Deno.test("UnsignedAnswers are for as long as that is proven", none, async () => {
  const bench = await benchOf();
  bench.bench.advance(61_000);
  assert.equal(askAtOnce(bench, "late.plain.test", ["late.plain.test 300 IN A 192.0.2.2"]), "");
});
