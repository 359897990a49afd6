import assert from "node:assert/strict";
import { Prng } from "../../../tests/prng.ts";
import {
  decodeMessage,
  QR_BIT,
  Qtype,
  Rcode,
  readRecord,
  RecordView,
  TC_BIT,
} from "../../dns/mod.ts";
import { CounterBlock, COUNTERS_BYTES } from "../../telemetry/mod.ts";
import { a, type FakeResponse, response, wire } from "../fakes.ts";
import { keptQuery, KEY_DO } from "../query.ts";
import type { Ask, AskOwner } from "./ask.ts";
import { Asker } from "./asker.ts";
import type { Exchange, Remote, Sending } from "./ports.ts";
import { Fit } from "./response.ts";
import { Server } from "./server.ts";

const none = { permissions: "none" } as const;
const PLAIN: Remote = { transport: "udp" };

/** Somebody who asks name servers, as recursion does, and notes what comes of it. */
class Bench implements Exchange, AskOwner {
  readonly asks: Ask[] = [];
  readonly told: string[] = [];
  readonly sent: { readonly packet: Uint8Array; readonly token: number }[] = [];
  readonly asker: Asker;
  sending: Sending = "sent";
  /** Nothing may be sent a second time. */
  isSpent = false;
  nowMs = 0;

  constructor(openMax = 100) {
    const prng = new Prng(3);
    this.asker = new Asker({
      exchange: this,
      counters: new CounterBlock(new ArrayBuffer(COUNTERS_BYTES)),
      openMax,
      nowMs: () => this.nowMs,
      random: (target) => target.set(prng.bytes(target.length)),
    });
  }

  remote(): Remote {
    return PLAIN;
  }
  send(_: Remote, packet: Uint8Array, length: number, token: number): Sending {
    this.sent.push({ packet: packet.slice(0, length), token });
    return this.sending;
  }
  sendTcp(remote: Remote, packet: Uint8Array, length: number, token: number): Sending {
    this.told.push("tcp");
    return this.send(remote, packet, length, token);
  }
  cancel(): void {}

  onSending({ overTcp }: Ask): void {
    this.told.push(overTcp ? "over TCP" : "sending");
  }
  maySendAgain(ask: Ask): boolean {
    if (!this.isSpent) return true;
    this.asker.release(ask);
    return false;
  }
  onHeard(): void {
    this.told.push("heard");
  }
  onResponse(ask: Ask, fit: Fit): void {
    this.told.push(fit === Fit.Response ? "response" : "failure");
    this.asker.release(ask);
  }
  onDoubt(): void {
    this.told.push("doubt");
  }
  onClosed(_: Ask, sending: Sending, reason: string): void {
    this.told.push(`${sending}: ${reason}`);
  }

  ask(name: string, server = new Server(PLAIN, false)): Sending {
    const query = keptQuery();
    query.qtype = Qtype.A;
    query.qclass = 1;
    query.keyBits = KEY_DO;
    query.rename(wire(name));
    return this.asker.ask(this, server, query);
  }

  /** Has the server answer what was sent last, if nothing else is named. */
  answer(fake: Partial<FakeResponse>, { packet, token } = this.sent.at(-1)!): void {
    const [{ name, type }] = decodeMessage(packet)!.questions;
    const id = (packet[0] << 8) | packet[1];
    const bytes = response({ id, name, type, flags: QR_BIT, ...fake });
    this.asker.onPacket(token, bytes, bytes.length);
  }
}

Deno.test("Asker asks a name server for what it knows, and no recursion of it", none, () => {
  const bench = new Bench();
  bench.ask("www.example");
  const { rd, ad, cd, opt } = decodeMessage(bench.sent[0].packet)!;
  assert.deepEqual({ rd, ad, cd, dnssecOk: opt?.dnssecOk }, {
    rd: false,
    ad: false,
    cd: false,
    dnssecOk: true,
  });
  bench.ask("www.example", new Server(PLAIN, true));
  assert.equal(decodeMessage(bench.sent[1].packet)!.rd, true, "of a resolver it is asked");
});

Deno.test("Asker hands out a referral whole, its glue as well", none, () => {
  const bench = new Bench();
  bench.ask("www.example.test");
  const seen: string[] = [];
  bench.onResponse = (ask, fit) => {
    const { packet, length, refers, answers, ...at } = bench.asker.response;
    assert.deepEqual([fit, refers, answers], [Fit.Response, true, 0]);
    const view = new RecordView();
    let offset = at.authoritiesAt;
    for (let i = 0; i < at.authorities + at.additionals; i++) {
      if (i === at.authorities) assert.equal(offset, at.additionalsAt);
      offset = readRecord(packet, offset, length, view);
      seen.push(`${view.type} ${packet.subarray(view.rdataOffset, view.end).join(" ")}`);
    }
    bench.asker.release(ask);
  };
  const records = [
    { section: 1, name: "example.test", type: Qtype.NS, ttl: 60, rdata: wire("ns.example.test") },
    { ...a("ns.example.test", 60, 53), section: 2 },
  ] as const;
  bench.answer({ records });
  assert.equal(seen.length, 2);
  assert.match(seen[0], new RegExp(`^${Qtype.NS} `));
  assert.equal(seen[1], "1 192 0 2 53");
  assert.equal(bench.asker.inUse, 0);
});

Deno.test("Asker asks a server without EDNS again without, and tells its owner", none, () => {
  const bench = new Bench();
  const server = new Server(PLAIN, false);
  bench.ask("www.example", server);
  bench.answer({ flags: QR_BIT | Rcode.FormErr });
  assert.deepEqual(bench.told.splice(0), ["sending", "heard", "sending"]);
  assert.equal(decodeMessage(bench.sent[1].packet)!.opt, null);
  bench.answer({ records: [a("www.example", 9)] });
  assert.deepEqual(bench.told.splice(0), ["heard", "response"]);
  bench.ask("other.example", server);
  assert.equal(decodeMessage(bench.sent[2].packet)!.opt, null);
  assert.deepEqual([bench.asker.inUse, server.open], [1, 1]);
});

Deno.test("Asker asks all again that went with EDNS to a server without", none, () => {
  const bench = new Bench();
  const server = new Server(PLAIN, false);
  const names = ["a.example", "b.example", "c.example"];
  for (const name of names) bench.ask(name, server);
  for (const sent of bench.sent.slice()) bench.answer({ flags: QR_BIT | Rcode.FormErr }, sent);
  const again = bench.sent.slice(names.length).map(({ packet }) => decodeMessage(packet)!);
  assert.deepEqual(
    again.map(({ opt, questions }) => [opt, questions[0].name.toLowerCase()]),
    names.map((name) => [null, name]),
  );
});

Deno.test(
  "Asker trusts a server with EDNS again that likes a question no better without",
  none,
  () => {
    const bench = new Bench();
    const server = new Server(PLAIN, false);
    bench.ask("odd.example", server);
    for (let i = 0; i < 2; i++) bench.answer({ flags: QR_BIT | Rcode.FormErr });
    assert.deepEqual(bench.told.at(-1), "failure");
    bench.ask("www.example", server);
    assert.notEqual(decodeMessage(bench.sent.at(-1)!.packet)!.opt, null);
  },
);

Deno.test("Asker leaves nothing behind of what can't be sent", none, () => {
  const bench = new Bench();
  bench.sending = "noSocket";
  assert.equal(bench.ask("www.example"), "noSocket");
  assert.deepEqual([bench.told, bench.asks, bench.asker.inUse], [["sending"], [], 0]);
  // A fallback is told of instead: its owner is not there to be handed a result.
  for (const flags of [QR_BIT | Rcode.FormErr, QR_BIT | 1 << 9]) {
    bench.told.length = 0;
    bench.sending = "sent";
    bench.ask("www.example");
    bench.sending = "unreachable";
    bench.answer({ flags });
    assert.equal(bench.told.at(-1), "unreachable: can't be reached from here");
    assert.deepEqual([bench.asks, bench.asker.inUse], [[], 0]);
  }
});

Deno.test("Asker sends nothing a second time that its owner has no more for", none, () => {
  for (const flags of [QR_BIT | Rcode.FormErr, QR_BIT | TC_BIT]) {
    const bench = new Bench();
    bench.ask("www.example");
    bench.isSpent = true;
    bench.answer({ flags });
    assert.deepEqual(bench.told, ["sending", "heard"]);
    assert.deepEqual([bench.sent.length, bench.asks, bench.asker.inUse], [1, [], 0]);
  }
});

Deno.test("Asker shares its room out: a silent server leaves the others half of it", none, () => {
  const bench = new Bench(10);
  const [silent, other] = [new Server(PLAIN, false), new Server(PLAIN, false)];
  while (!bench.asker.isFull(silent)) bench.ask("www.example", silent);
  assert.deepEqual([silent.open, bench.asker.isFull(other)], [5, false]);
  bench.asker.releaseAll(bench);
  assert.deepEqual([silent.open, bench.asker.inUse, bench.asks], [0, 0, []]);
});
