// Goal: what is asked over TLS and HTTPS is asked of the right server and of nobody else, and is answered
// while any upstream works. Method: unbound's own listeners, killed, restarted and shown with the wrong
// certificates; servers of ours where the bytes of a query matter.

import assert from "node:assert/strict";
import { type Message, Qtype, Rcode } from "../../src/dns/mod.ts";
import {
  type Asked,
  fakeDoh,
  fakeDot,
  type FakeServer,
} from "../../src/transport/exchange/fakes.ts";
import { Api } from "./api.ts";
import { type Authority, makeAuthority } from "./certificates.ts";
import { ask, decode, nextId } from "./clients.ts";
import { address, answer, FakeUpstream, seenInStream } from "./fake_upstream.ts";
import {
  hasProgram,
  pause,
  PERMISSIONS,
  Service,
  sideBySide,
  type Toml,
  until,
} from "./harness.ts";
import { serverCertificate, Unbound } from "./unbound.ts";

const HAS_UNBOUND = hasProgram("unbound");
const UNBOUND = "192.0.2.53";
const OTHER = "192.0.2.54";
const BLOCK_BYTES = 128;
const OPT_PADDING = 12;

const dataOf = ({ answers }: Message) => answers.map(({ data }) => data).join();
const freshName = () => `n${nextId()}.test`;

/** An authority and the file that says to trust it. */
class Trust implements AsyncDisposable {
  private constructor(
    readonly authority: Authority,
    readonly directory: string,
    readonly file: string,
  ) {}

  static async make(): Promise<Trust> {
    const authority = await makeAuthority();
    const directory = await Deno.makeTempDir({ prefix: "svc-ca-" });
    const file = `${directory}/ca.pem`;
    await Deno.writeTextFile(file, authority.cert);
    return new Trust(authority, directory, file);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.directory, { recursive: true });
  }
}

/** The two ways to an unbound, as `[[upstream]] address` has them. */
const WAYS = [
  ["tls", ({ tlsPort }: Unbound) => `tls://127.0.0.1:${tlsPort}#dns.test`],
  ["https", ({ httpsPort }: Unbound) => `https://127.0.0.1:${httpsPort}/dns-query#dns.test`],
] as const;

/** With upstreams that may take long to shake hands: a busy machine has other things to do. */
function serviceOf(...upstreams: Readonly<Record<string, Toml>>[]): Promise<Service> {
  const upstream = upstreams.map((one) => ({ timeout: "10s", ...one }));
  return Service.start({ config: { upstream } });
}

const statusOf = async (service: Service) => await (await Api.of(service)).call("GET", "status");

async function answersByUnbound(): Promise<void> {
  await using trust = await Trust.make();
  // It closes connections quickly, so that most queries find one that is just ending or gone; but
  // not so quickly that a busy machine has no time to shake hands.
  const idleMs = 2_000;
  await using unbound = await Unbound.start(await serverCertificate(trust.authority), { idleMs });
  for (const [, way] of WAYS) {
    const upstream = { address: way(unbound), ca: trust.file };
    await using service = await serviceOf(upstream);
    const all = await Promise.all(
      Array.from({ length: 300 }, () => ask(service.address, freshName(), Qtype.A, { edns: {} })),
    );
    for (const message of all) {
      assert.equal(dataOf(message), UNBOUND, JSON.stringify(message.opt?.errors));
    }
    for (const moreMs of [-50, 0, 10, 50, 500]) {
      await pause(idleMs + moreMs);
      assert.equal(dataOf(await ask(service.address, freshName(), Qtype.A)), UNBOUND);
    }
    assert.equal((await ask(service.address, "a.invalid", Qtype.A)).rcode, Rcode.NXDomain);
    await until("the upstream's health, reported", async () => {
      const { upstreams: [seen] } = await statusOf(service);
      assert.equal(seen?.address ?? upstream.address, upstream.address);
      return seen?.healthy === true && seen.latency_ms !== null;
    });
    assert.deepEqual((await statusOf(service)).problems, []);
    service.assertCalm();
  }
}

async function survivesRestarts(): Promise<void> {
  await using trust = await Trust.make();
  await using unbound = await Unbound.start(await serverCertificate(trust.authority));
  for (const [, way] of WAYS) {
    await using service = await serviceOf({ address: way(unbound), ca: trust.file });
    assert.equal(dataOf(await ask(service.address, freshName(), Qtype.A)), UNBOUND);
    await unbound.kill();
    const waiting = Array.from({ length: 20 }, () => ask(service.address, freshName(), Qtype.A));
    await pause(100);
    await unbound.open();
    for (const message of await Promise.all(waiting)) assert.equal(dataOf(message), UNBOUND);
    service.assertCalm();
  }
}

async function failsOver(): Promise<void> {
  await using trust = await Trust.make();
  const issued = await serverCertificate(trust.authority);
  await using first = await Unbound.start(issued);
  await using second = await Unbound.start(issued, { address: OTHER });
  await using service = await serviceOf(
    { address: WAYS[0][1](first), ca: trust.file },
    { address: WAYS[1][1](second), ca: trust.file },
  );
  const askNew = async () => dataOf(await ask(service.address, freshName(), Qtype.A));
  assert.equal(await askNew(), UNBOUND);
  await first.kill();
  for (let i = 0; i < 10; i++) assert.equal(await askNew(), OTHER);
  const { message, reason } = await service.logged("upstream does not answer");
  assert.equal(reason, "refused the connection", message);
  await until("the problem, reported", async () => {
    const { problems, upstreams } = await statusOf(service);
    const want = `upstream ${WAYS[0][1](first)} refused the connection`;
    return problems.includes(want) && upstreams[0].healthy === false;
  });
  await first.open();
  await until("the first, trusted again", async () => await askNew() === UNBOUND);
  await service.logged("upstream answers again");
}

async function refusesTheWrongOnes(): Promise<void> {
  await using trust = await Trust.make();
  const { authority } = trust;
  const stranger = await makeAuthority("a stranger");
  const past = { notBefore: new Date("2020-01-01"), notAfter: new Date("2020-02-01") };
  const rows = [
    [await authority.issue({ names: ["other.test"] }), /is not valid for dns\.test/],
    [await authority.issue({ names: ["dns.test"], ...past }), /expired at 2020-02-01T/],
    [await stranger.issue({ names: ["dns.test"] }), /an authority that is not trusted/],
  ] as const;
  const refuses = async ([issued, want]: typeof rows[number]) => {
    await using unbound = await Unbound.start(issued);
    for (const [, way] of WAYS) {
      await using service = await serviceOf({ address: way(unbound), ca: trust.file });
      for (let i = 0; i < 2; i++) {
        const message = await ask(service.address, freshName(), Qtype.A, { edns: {} });
        assert.equal(message.rcode, Rcode.ServFail);
        const [{ data }] = message.opt?.options ?? [];
        assert.match(new TextDecoder().decode(data.subarray(2)), want);
      }
      const { reason } = await service.logged("upstream does not answer");
      assert.match(String(reason), want);
      await until("the problem, reported", async () => {
        const { problems } = await statusOf(service);
        return problems.some((problem: string) => want.test(problem));
      });
      assert.equal(service.count("upstream does not answer"), 1, "once an outage");
    }
  };
  await Promise.all(rows.map(refuses));
}

async function findsNamedUpstreams(): Promise<void> {
  await using trust = await Trust.make();
  await using unbound = await Unbound.start(await serverCertificate(trust.authority));
  // Knows where the other one is, and answers differently.
  await using plain = await FakeUpstream.start((query) => {
    if (query.name.toLowerCase() !== "dns.test") return address(query, OTHER);
    return query.type === Qtype.A ? address(query, "127.0.0.1") : answer(query);
  });
  const { tlsPort, httpsPort } = unbound;
  for (const named of [`tls://dns.test:${tlsPort}`, `https://dns.test:${httpsPort}/dns-query`]) {
    await using looked = await Service.start({
      config: {
        upstream: [{ address: named, ca: trust.file }, { address: plain.text }],
        // Loopback is no address that a public name may have otherwise.
        security: { rebinding_protection: false },
      },
    });
    await looked.logged("found an upstream", { upstream: named });
    await until("an answer of the named one", async () => {
      return dataOf(await ask(looked.address, freshName(), Qtype.A)) === UNBOUND;
    });
    looked.assertCalm();
    await using told = await serviceOf({
      address: named,
      ca: trust.file,
      bootstrap: ["127.0.0.1"],
    });
    assert.equal(dataOf(await ask(told.address, freshName(), Qtype.A)), UNBOUND);
    assert.equal(told.count("found an upstream"), 0);
    // Nobody can look this name up but the upstream itself.
    await using lone = await serviceOf({ address: named, ca: trust.file });
    const message = await ask(lone.address, freshName(), Qtype.A);
    assert.equal(message.rcode, Rcode.ServFail);
    const { reason, effect } = await lone.logged("an upstream can't be found");
    assert.match(String(reason), /can't be looked up/);
    assert.equal(effect, "it is not asked");
  }
}

async function leavesOutUnreadableAuthorities(): Promise<void> {
  await using plain = await FakeUpstream.start((query) => address(query, OTHER));
  await using service = await serviceOf(
    { address: "tls://127.0.0.1:853#dns.test", ca: "missing.pem" },
    { address: plain.text },
  );
  assert.equal(dataOf(await ask(service.address, freshName(), Qtype.A)), OTHER);
  const { problems } = await statusOf(service);
  assert.equal(problems.length, 1);
  assert.match(problems[0], /^upstream\[0\]\.ca: tls:.* is not asked: /);
}

/** A domain of its own: nobody else is told its names, who would deny them. */
async function closesDomainsOfUnreadableAuthorities(): Promise<void> {
  for (const enabled of [false, true]) {
    await using plain = await FakeUpstream.start((query) => address(query, OTHER));
    await using service = await Service.start({
      config: {
        recursion: { enabled, dnssec: false },
        upstream: [
          {
            address: "tls://127.0.0.1:853#dns.test",
            ca: "missing.pem",
            domains: ["corp.example", "b.lan.example"],
          },
          { address: plain.text, domains: ["lan.example"] },
          ...(enabled ? [] : [{ address: plain.text }]),
        ],
      },
    });
    const asked = async (name: string) => {
      const { rcode, opt, answers } = await ask(service.address, name, Qtype.A, { edns: {} });
      return [rcode, answers.at(-1)?.data, opt?.errors.at(0)?.text];
    };
    const closed = "the upstream for this domain can't be used: see the status of the node";
    for (const name of ["db.corp.example", "corp.example", "a.b.lan.example"]) {
      assert.deepEqual(await asked(name), [Rcode.ServFail, undefined, closed]);
    }
    assert.deepEqual(await asked("a.lan.example"), [Rcode.NoError, OTHER, undefined]);
    const names = plain.seen.map(({ name }) => name.toLowerCase());
    assert.ok(names.every((name) => name === "." || name === "a.lan.example"), names.join());
    const { problems } = await statusOf(service);
    const want =
      /^upstream\[0\]\.ca: tls:.* is not asked: .*; names below corp\.example, b\.lan\.example get SERVFAIL$/;
    assert.ok(problems.some((problem: string) => want.test(problem)), problems.join("\n"));
  }
}

/** Answers queries of a server of ours as `fake_upstream` does. */
function script(data: string): (asked: Asked) => void {
  return ({ packet, reply }) => {
    const seen = seenInStream(packet);
    reply(seen.type === Qtype.A ? address(seen, data) : answer(seen));
  };
}

/** Padded to whole blocks (RFC 8467 §4.1); its ID. */
function checkPadded({ packet }: Asked): number {
  const { id, opt } = decode(packet);
  assert.equal(packet.length % BLOCK_BYTES, 0, `${packet.length} bytes`);
  const padding = opt?.options.filter(({ code }) => code === OPT_PADDING) ?? [];
  assert.equal(padding.length, 1);
  assert.ok(padding[0].data.every((byte) => byte === 0));
  return id;
}

async function hidesWhatItAsks(): Promise<void> {
  await using trust = await Trust.make();
  const issued = await serverCertificate(trust.authority);
  const askAll = async (server: FakeServer, upstream: string): Promise<number[]> => {
    server.script = script(OTHER);
    await using service = await serviceOf({ address: upstream, ca: trust.file });
    const names = Array.from({ length: 50 }, (_, i) => `${"x".repeat(i)}${freshName()}`);
    names.push(Array.from({ length: 4 }, () => "y".repeat(60)).join("."));
    for (const name of names) {
      assert.equal(dataOf(await ask(service.address, name, Qtype.A)), OTHER);
    }
    // Those that waited long were asked again, maybe elsewhere.
    assert.ok(server.connections.opened < names.length / 4, "connections are used again");
    assert.ok(server.asked.length >= names.length);
    return server.asked.map(checkPadded);
  };
  await using dot = await fakeDot(issued, ["dot"]);
  const ids = await askAll(dot, `tls://127.0.0.1:${dot.port}#dns.test`);
  assert.ok(new Set(ids).size > 0.9 * ids.length, "IDs are random over TLS");
  await using doh = await fakeDoh(issued);
  const zeros = await askAll(doh, `https://127.0.0.1:${doh.port}/dns-query#dns.test`);
  assert.ok(zeros.every((id) => id === 0), "and 0 over HTTPS, for caches on the way");
}

Deno.test({
  name: "svc run asks encrypted upstreams",
  permissions: PERMISSIONS,
  ignore: !HAS_UNBOUND,
  fn: (t) =>
    sideBySide(t, [
      ["answers by unbound's listeners, which close idle connections", answersByUnbound],
      ["loses nobody who waits while unbound is killed and started again", survivesRestarts],
      ["asks the next upstream while the first is away, and comes back", failsOver],
      ["finds upstreams by their names", findsNamedUpstreams],
    ]),
});

Deno.test({
  name: "svc run refuses encrypted upstreams that are not the right ones",
  permissions: PERMISSIONS,
  ignore: !HAS_UNBOUND,
  fn: refusesTheWrongOnes,
});

Deno.test("svc run leaves out upstreams whose authorities can't be read", {
  permissions: PERMISSIONS,
}, leavesOutUnreadableAuthorities);

Deno.test("svc run tells nobody else of domains whose authorities can't be read", {
  permissions: PERMISSIONS,
}, closesDomainsOfUnreadableAuthorities);

Deno.test("svc run pads what it asks, with random IDs over TLS and none over HTTPS", {
  permissions: PERMISSIONS,
}, hidesWhatItAsks);
