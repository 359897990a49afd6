// Goal: a query is answered while any upstream works, and an upstream that failed is trusted again only
// after it has answered a probe. Method: scripted upstreams that go and come back, then real ones,
// killed and started again while dnsperf keeps the service busy.

import assert from "node:assert/strict";
import { type Message, Qtype, Rcode } from "../../src/dns/mod.ts";
import { ask, dnsperf, nextId } from "./clients.ts";
import { address, answer, FakeUpstream, type Script } from "./fake_upstream.ts";
import { freePort, hasProgram, pause, PERMISSIONS, Service, sideBySide, until } from "./harness.ts";

const FIRST = "192.0.2.1";
const SECOND = "192.0.2.2";
/** Questions of a probe: the root's name servers. */
const isProbe = ({ type }: { type: number }) => type === Qtype.NS;

const dataOf = ({ answers }: Message) => answers.map(({ data }) => data).join();
const freshName = () => `n${nextId()}.example`;
const by = (data: string): Script => (query) =>
  isProbe(query) ? answer(query) : address(query, data);

/** How the first upstream fails, and whether its silence is what is waited for. */
const FAILURES: readonly (readonly [string, Script | "closed"])[] = [
  ["is silent", () => null],
  ["is closed", "closed"],
  ["answers SERVFAIL", (query) => answer(query, { rcode: Rcode.ServFail })],
  ["answers REFUSED", (query) => answer(query, { rcode: Rcode.Refused })],
  ["answers NOTIMP", (query) => answer(query, { rcode: Rcode.NotImp })],
  ["answers by halves", (query) => address(query).subarray(0, 20)],
  ["refers to others", (query) =>
    answer(query, {
      authorities: [{ type: Qtype.NS, ttl: 60, data: Uint8Array.of(1, 97, 0) }],
    })],
];

async function asksTheNext(t: Deno.TestContext): Promise<void> {
  await using first = await FakeUpstream.start(by(FIRST));
  await using second = await FakeUpstream.start(by(SECOND));
  await using service = await Service.start({
    config: { upstream: [{ address: first.text }, { address: second.text }] },
  });
  const askNew = async () => dataOf(await ask(service.address, freshName(), Qtype.A));
  await t.step("the first answers all while it works", async () => {
    // When it is slow for once, the other is asked as well.
    await until("many answers of the first in a row", async () => {
      const before = second.seen.length;
      for (let i = 0; i < 30; i++) if (await askNew() !== FIRST) return false;
      return second.seen.length === before;
    });
  });
  for (const [name, failure] of FAILURES) {
    await t.step(`the first ${name}`, async () => {
      if (failure === "closed") await first.close();
      else first.script = failure;
      for (let i = 0; i < 5; i++) assert.equal(await askNew(), SECOND);
      if (failure === "closed") await first.open();
      first.script = by(FIRST);
      await until("the first, trusted again", async () => await askNew() === FIRST);
    });
  }
  service.assertCalm();
}

async function backsOff(): Promise<void> {
  // Silent up to its third probe.
  await using first = await FakeUpstream.start((q) => probes().length < 3 ? null : by(FIRST)(q));
  const probes = () => first.seen.filter(isProbe);
  await using second = await FakeUpstream.start(by(SECOND));
  await using service = await Service.start({
    config: {
      upstream: [
        { address: first.text, timeout: "300ms" },
        { address: second.text, timeout: "10s" },
      ],
    },
  });
  let queries = 0;
  const askNew = async () => {
    queries++;
    return dataOf(await ask(service.address, freshName(), Qtype.A));
  };
  const failing = service.logged("upstream does not answer", { upstream: first.text });
  const busy = until("word of the failure", async () => {
    assert.equal(await askNew(), SECOND);
    return service.count("upstream does not answer") > 0;
  });
  await Promise.all([failing, busy]);
  const before = first.seen.filter((query) => !isProbe(query)).length;
  queries = 0;
  for (let i = 0; i < 20; i++) assert.equal(await askNew(), SECOND);
  await until("the first, trusted again", async () => await askNew() === FIRST);
  const [a, b, c] = probes();
  // A second, two and four go by before them; when the first of two is seen late, less between them.
  assert(b.atMs - a.atMs >= 1_000 && c.atMs - b.atMs > b.atMs - a.atMs, `${c.atMs - b.atMs} ms`);
  const early = first.seen.filter((query) => !isProbe(query) && query.atMs < c.atMs).length -
    before;
  // None waits for it before it has answered a probe, unless the second is slow for once.
  assert(early < queries / 10, `${early} of ${queries} queries`);
  assert.equal(service.count("upstream answers again"), 1);
  service.assertCalm();
}

async function triesFailingOnes(): Promise<void> {
  await using first = await FakeUpstream.start(by(FIRST));
  await using second = await FakeUpstream.start(by(SECOND));
  await using service = await Service.start({
    config: {
      upstream: [first, second].map(({ text }) => ({ address: text, timeout: "10s" })),
    },
  });
  await Promise.all([first.close(), second.close()]);
  await until("word of both failures", async () => {
    const got = await ask(service.address, freshName(), Qtype.A, { edns: {} });
    assert.equal(got.rcode, Rcode.ServFail);
    assert.equal(got.opt?.errors.length, 1);
    return service.count("upstream does not answer") === 2;
  });
  await second.open();
  // At once, not after the next probe: nobody else is left to ask.
  const got = await ask(service.address, freshName(), Qtype.A);
  assert.equal(dataOf(got), SECOND);
  await first.open();
  await until("the first, trusted again", async () => {
    await pause(20);
    return dataOf(await ask(service.address, freshName(), Qtype.A)) === FIRST;
  });
  service.assertCalm();
}

Deno.test("svc run fails over", { permissions: PERMISSIONS }, (t) =>
  sideBySide(t, [
    ["asks upstreams in order, and the next when one fails", asksTheNext],
    ["leaves a failing upstream alone and probes it ever more seldom", backsOff],
    ["tries failing upstreams where there are no others", triesFailingOnes],
  ]));

/** dnsmasq that answers everything with one address; dies by SIGKILL and starts on the same port. */
class Dnsmasq {
  #child: Deno.ChildProcess | null = null;

  constructor(readonly port: number, readonly data: string) {}

  start(): void {
    const at = ["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null"];
    const listen = ["--listen-address=127.0.0.1", "--bind-interfaces", `--port=${this.port}`];
    this.#child = new Deno.Command("dnsmasq", {
      args: [...at, ...listen, "--pid-file", "--user=root", `--address=/#/${this.data}`],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    child.kill("SIGKILL");
    await child.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

Deno.test("svc run loses nothing under load while upstreams are killed and started again", {
  permissions: PERMISSIONS,
  ignore: ["dnsperf", "dnsmasq"].map(hasProgram).includes(false),
}, async () => {
  await using first = new Dnsmasq(freePort(), FIRST);
  await using second = new Dnsmasq(freePort(), SECOND);
  const text = ({ port }: Dnsmasq) => `127.0.0.1:${port}`;
  await using service = await Service.start({
    config: { upstream: [first, second].map((upstream) => ({ address: text(upstream) })) },
  });
  const answers = async (data: string) =>
    dataOf(await ask(service.address, freshName(), Qtype.A)) === data;
  first.start();
  second.start();
  await until("both upstreams", () => answers(FIRST));
  const QUERIES = 2_400;
  const PER_SECOND = 400;
  const names = Array.from({ length: QUERIES }, (_, i) => `load-${i}.example A`);
  let running = true;
  const load = dnsperf(service.address, service.directory, names, PER_SECOND)
    .finally(() => running = false);
  let kills = 0;
  while (running || kills < 2) {
    const [victim, other] = kills % 2 === 0 ? [first, SECOND] : [second, FIRST];
    await victim.kill();
    kills++;
    await until("answers of the other", () => answers(other));
    await pause(300);
    victim.start();
    await until("the order of before", () => answers(FIRST));
  }
  const { sent, lost, rcodes, text: report } = await load;
  assert.equal(sent, QUERIES, report);
  // Also those in flight to the one that was killed: they were asked of the other.
  assert.deepEqual([lost, rcodes], [0, { NOERROR: QUERIES }], report);
  console.log(`${sent} queries, ${kills} kills of upstreams: ${lost} lost, none failed`);
  service.assertCalm();
});
