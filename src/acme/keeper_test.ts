// Goal: a certificate is had and renewed in time, whatever the authority, the disk and the clock do, and
// no authority is asked more often than it has to be. Method: the keeper over an authority, files and a
// clock of the test's own.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { makeStandIn } from "./certificates.ts";
import { type FakeAnswer, FakeCa, type FakeCaOptions, refusal } from "./fakes.ts";
import { AcmeKeeper, type AcmeOptions, type Proof } from "./mod.ts";

const ORIGIN = "https://ca.example";
const START_MS = Date.UTC(2026, 10, 22);
const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

/** A machine with its disk and its clock, before an authority. */
class Machine {
  nowMs = START_MS;
  state: string | null = null;
  certificate: string | null = null;
  /** What writing comes to. */
  diskFails = false;
  renewed = 0;
  readonly proofs: Proof[] = [];
  readonly ca: FakeCa;

  constructor(over: Partial<FakeCaOptions> = {}) {
    this.ca = new FakeCa({
      origin: ORIGIN,
      nowMs: () => this.nowMs,
      lookUp: (kind, name, token) => {
        const found = this.proofs.find((proof) =>
          kind === "http-01"
            ? proof.kind === "http" && proof.token === token
            : proof.kind === "dns" && proof.name === `_acme-challenge.${name}`
        );
        return Promise.resolve(found?.text ?? null);
      },
      ...over,
    });
  }

  keeper(over: Partial<AcmeOptions> = {}): AcmeKeeper {
    const write = (work: () => void) => {
      if (this.diskFails) return Promise.reject(new Error("No space left on device"));
      return Promise.resolve(work());
    };
    return new AcmeKeeper({
      directory: `${ORIGIN}/directory`,
      email: "anna@example.org",
      external: null,
      domains: ["dns.example"],
      challenge: "http-01",
      ...over,
    }, {
      ask: this.ca.ask,
      nowMs: () => this.nowMs,
      deadline: () => new AbortController().signal,
      chance: () => 0,
      sleep: (ms) => {
        this.nowMs += ms;
        return Promise.resolve();
      },
      show: (proof) => Promise.resolve(void this.proofs.push(proof)),
      hide: (proof) => Promise.resolve(void this.proofs.splice(this.proofs.indexOf(proof), 1)),
      files: {
        readState: () => Promise.resolve(this.state),
        writeState: (text) => write(() => this.state = text),
        readCertificate: () => Promise.resolve(this.certificate),
        writeCertificate: (pem) => write(() => this.certificate = pem),
      },
      onRenewed: () => Promise.resolve(void this.renewed++),
    });
  }

  get names(): string | undefined {
    return new X509Certificate(this.certificate ?? "").subjectAltName;
  }
}

const options = { permissions: "none" } as const;

Deno.test("AcmeKeeper gets a certificate over HTTP and over DNS", options, async (t) => {
  for (const challenge of ["http-01", "dns-01"] as const) {
    await t.step(challenge, async () => {
      const machine = new Machine();
      machine.certificate = await makeStandIn(["dns.example"], START_MS);
      const domains = challenge === "dns-01" ? ["dns.example", "*.dns.example"] : ["dns.example"];
      const keeper = machine.keeper({ challenge, domains });
      assert.equal(keeper.status.certificate, "stand_in");
      const waitMs = await keeper.step();
      assert.deepEqual([keeper.status.certificate, keeper.problems], ["issued", []]);
      assert.equal(machine.names, domains.map((name) => `DNS:${name}`).join(", "));
      assert.match(machine.certificate, /BEGIN PRIVATE KEY/);
      assert.deepEqual([machine.renewed, machine.proofs.length, machine.ca.orders], [1, 0, 1]);
      assert.ok(Math.abs(waitMs - 60 * DAY_MS) < HOUR_MS, "renewed at two thirds");
    });
  }
});

Deno.test("AcmeKeeper renews at two thirds of the life, not before", options, async () => {
  const machine = new Machine({ lifeDays: 9 });
  const keeper = machine.keeper();
  await keeper.step();
  machine.nowMs = START_MS + 5.9 * DAY_MS;
  await keeper.step();
  assert.equal(machine.ca.orders, 1);
  machine.nowMs = START_MS + 6.1 * DAY_MS;
  await keeper.step();
  assert.deepEqual([machine.ca.orders, machine.renewed], [2, 2]);
  // A new start finds what is there.
  await machine.keeper().step();
  assert.equal(machine.ca.orders, 2);
});

Deno.test("AcmeKeeper orders anew for other names, and binds an account", options, async () => {
  const hmacKey = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
  const machine = new Machine({ hmacKey });
  const external = { kid: "kid-1", hmacKey };
  await machine.keeper({ external }).step();
  await machine.keeper({ external, domains: ["other.example"] }).step();
  assert.equal(machine.names, "DNS:other.example");
  assert.equal(machine.ca.heard.filter((one) => one === "POST /account").length, 1);
});

/** What an authority may come to, and what is said of it. */
const TROUBLE: readonly (readonly [string, string, FakeAnswer, RegExp])[] = [
  ["a directory that is none", "/directory", { status: 200, body: "<html>" }, /no JSON object/],
  ["half a directory", "/directory", { status: 200, body: "{}" }, /newNonce.* names no URL/],
  ["a directory of somebody else's", "/directory", {
    status: 200,
    body: '{"newNonce":"https://192.168.1.1/","newAccount":"x","newOrder":"x"}',
  }, /https:\/\/192\.168\.1\.1, which is not its own/],
  ["an error without words", "/order", { status: 502, body: "Bad gateway" }, /answers 502/],
  [
    "a redirect",
    "/order",
    { status: 302, headers: { location: "http://127.0.0.1/" } },
    /redirects/,
  ],
  ["a huge body", "/order", { status: 201, body: "x".repeat(300_000) }, /larger than/],
  ["a nonce that never is right", "/account", refusal(400, "badNonce", "no"), /refuses: no$/],
  [
    "words to fake a log with",
    "/account",
    refusal(403, "x", "a\n\u001b[31mb"),
    /refuses: a \[31mb$/,
  ],
  ["an order without a place", "/order", {
    status: 201,
    headers: { "content-type": "application/json" },
    body: "{}",
  }, /the order: the authority names no URL/],
  ["no certificate", "/certificate/0", { status: 200, body: "hello" }, /is no certificate/],
];

Deno.test(
  "AcmeKeeper says what an authority does wrong, and tries again later",
  options,
  async (t) => {
    for (const [what, place, answer, said] of TROUBLE) {
      await t.step(what, async () => {
        const machine = new Machine();
        const keeper = machine.keeper();
        machine.ca.trouble = (path) => path === place ? answer : null;
        assert.equal(await keeper.step(), 60_000);
        assert.match(keeper.status.failure ?? "", said);
        assert.match(
          keeper.problems[0],
          /^acme: no certificate for dns\.example is had: .* tried again at 2026/,
        );
        assert.deepEqual([machine.proofs.length, machine.certificate], [0, null]);
        const heard = machine.ca.heard.length;
        await keeper.step();
        assert.equal(machine.ca.heard.length, heard, "not before its time");
        machine.ca.trouble = () => null;
        machine.nowMs += 61_000;
        await keeper.step();
        assert.deepEqual(keeper.problems, []);
        assert.equal(machine.names, "DNS:dns.example");
      });
    }
  },
);

Deno.test("AcmeKeeper takes a nonce that is used up for none", options, async () => {
  const machine = new Machine();
  let left = 3;
  machine.ca.trouble = (path) =>
    path === "/account" && left-- > 0 ? refusal(400, "badNonce", "used up") : null;
  const keeper = machine.keeper();
  await keeper.step();
  assert.equal(keeper.status.failure, null);
});

Deno.test("AcmeKeeper leaves an authority alone for as long as it says", options, async () => {
  const machine = new Machine();
  const keeper = machine.keeper();
  machine.ca.trouble = (path) =>
    path === "/order" ? refusal(429, "rateLimited", "too many", { "retry-after": "172800" }) : null;
  assert.equal(await keeper.step(), 2 * DAY_MS);
  machine.ca.trouble = (path) => path === "/order" ? refusal(429, "rateLimited", "too many") : null;
  machine.nowMs += 2 * DAY_MS;
  assert.equal(await keeper.step(), HOUR_MS);
  // Nothing waits for a clock that was wrong.
  machine.nowMs = START_MS - 365 * DAY_MS;
  machine.ca.trouble = () => null;
  const next = machine.keeper();
  await next.step();
  assert.equal(next.status.failure, null);
});

Deno.test(
  "AcmeKeeper places five orders a day at most, through any number of starts",
  options,
  async () => {
    // Nobody is shown a proof: each order is lost.
    const machine = new Machine({ lookUp: () => Promise.resolve(null) });
    const endsAtMs = START_MS + DAY_MS - HOUR_MS;
    let looks = 0;
    while (machine.nowMs < endsAtMs && looks++ < 500) {
      const keeper = machine.keeper();
      machine.nowMs += Math.max(1, Math.min(await keeper.step(), HOUR_MS));
      // Somebody who can't wait: what is kept of the failure goes, what is kept of the orders stays.
      machine.state = JSON.stringify({ ...JSON.parse(machine.state!), failures: 0, nextAtMs: 0 });
    }
    assert.equal(machine.ca.orders, 5);
    assert.match(JSON.parse(machine.state!).failure, /5 orders a day/);
  },
);

Deno.test("AcmeKeeper backs off, to a day at most", options, async () => {
  const machine = new Machine();
  machine.ca.trouble = () => ({ status: 500 });
  const waits: number[] = [];
  const keeper = machine.keeper();
  for (let i = 0; i < 14; i++) {
    waits.push(await keeper.step() / 60_000);
    machine.nowMs += waits[i] * 60_000;
  }
  assert.deepEqual(waits.slice(0, 4), [1, 2, 4, 8]);
  assert.equal(waits.at(-1), 24 * 60);
  assert.equal(machine.ca.orders, 0);
});

Deno.test("AcmeKeeper goes on with its order after a stop at any moment", options, async () => {
  const whole = new Machine();
  await whole.keeper().step();
  const requests = whole.ca.heard.length;
  for (let at = 1; at <= requests; at++) {
    const machine = new Machine();
    const keeper = machine.keeper();
    machine.ca.trouble = () => {
      // The answer to this request comes, and nobody is there to hear it.
      if (machine.ca.heard.length === at) keeper.stop();
      return null;
    };
    await keeper.step();
    machine.ca.trouble = () => null;
    machine.nowMs += 10 * 60_000;
    const next = machine.keeper();
    await next.step();
    assert.deepEqual([next.status.failure, machine.names], [null, "DNS:dns.example"], `${at}`);
    // An order of which the answer was not heard is placed again.
    const isLost = whole.ca.heard[at - 1] === "POST /order";
    assert.equal(machine.ca.orders, isLost ? 2 : 1, `${at}: ${whole.ca.heard[at - 1]}`);
    assert.equal(machine.proofs.length, 0);
  }
});

Deno.test("AcmeKeeper orders nothing while it can write nothing", options, async () => {
  const machine = new Machine();
  const keeper = machine.keeper();
  machine.diskFails = true;
  assert.equal(await keeper.step(), 60_000);
  assert.equal(machine.ca.heard.length, 0);
  assert.match(keeper.problems[0], /\[store\] path: No space left on device/);
  machine.diskFails = false;
  await keeper.step();
  assert.deepEqual(keeper.problems, []);
});

Deno.test(
  "AcmeKeeper loses no key and no order where the disk fails meanwhile",
  options,
  async () => {
    const whole = new Machine();
    await whole.keeper().step();
    for (let at = 1; at <= whole.ca.heard.length; at++) {
      const machine = new Machine();
      machine.ca.trouble = () => {
        machine.diskFails = machine.ca.heard.length >= at;
        return null;
      };
      const keeper = machine.keeper();
      await keeper.step();
      machine.ca.trouble = () => null;
      machine.diskFails = false;
      machine.nowMs += 10 * 60_000;
      await keeper.step();
      assert.deepEqual([keeper.problems, machine.names], [[], "DNS:dns.example"], `${at}`);
      assert.ok(machine.ca.orders <= 2, `${at}: ${machine.ca.orders}`);
    }
  },
);

Deno.test("AcmeKeeper orders nothing by a clock that is wrong", options, async () => {
  const machine = new Machine({ nowMs: () => START_MS });
  machine.nowMs = START_MS + 3 * DAY_MS;
  const keeper = machine.keeper();
  await keeper.step();
  assert.match(keeper.status.failure ?? "", /differ by 72 hours: see that NTP/);
  assert.equal(machine.ca.orders, 0);
  machine.nowMs = START_MS; // Nothing waits for what the clock said.
  machine.keeper();
  await machine.keeper().step();
  assert.equal(machine.ca.orders, 1);
});

Deno.test("AcmeKeeper begins anew with what it can't read", options, async () => {
  const machine = new Machine();
  machine.state = '{"format":1,"directory":';
  const keeper = machine.keeper();
  await keeper.step();
  assert.equal(keeper.status.certificate, "issued");
  const { accountKey } = JSON.parse(machine.state);
  await machine.keeper({ directory: `${ORIGIN}/directory?other` }).step();
  assert.notEqual(
    JSON.parse(machine.state).accountKey,
    accountKey,
    "another authority, another key",
  );
});
