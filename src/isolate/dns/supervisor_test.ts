// Goal: an isolate that fails is replaced, its sockets go on, and the rest does not notice. Method: the
// real supervisor over a worker that fails on demand, asked over real sockets before, during and after.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { formatIp, type HostPort, parseIp } from "../../addr/mod.ts";
import { decodeMessage, encodeQuery, type Message, Qtype } from "../../dns/mod.ts";
import { SvcError } from "../../errors.ts";
import { handLogLines, type LogLine } from "../../log.ts";
import { openNative } from "../../native/mod.ts";
import { Outcome } from "../../resolver/mod.ts";
import { policyData } from "../../snapshot/fakes.ts";
import { Counter, sumOutcome } from "../../telemetry/mod.ts";
import type { Failure } from "../../../tests/e2e/failing_dns_worker.ts";
import { Hang } from "../../../tests/e2e/hang.ts";
import { hasProgram } from "../../../tests/e2e/harness.ts";
import { AUTHORITY, Client, identityOf } from "../../transport/fakes.ts";
import type { DnsTls, DnsUpstream } from "../messages.ts";
import { SCOPES, startWorker } from "../scopes.ts";
import { type DnsSeats, openSeats } from "./seats.ts";
import type { DnsOptions } from "./options.ts";
import { DnsSupervisor } from "./supervisor.ts";

const PERMISSIONS = { net: true, ffi: true, read: true } as const;
/** Longest wait for anything that must happen; silence of an isolate is believed after ten seconds. */
const WAIT_MS_MAX = 60_000;
/** A machine may be so busy that an isolate does not start in the time it has. */
const START_TRIES_MAX = 5;
const POLL_MS = 20;
const OWN_NAME = "health.svc.test";
const HAS_NATIVE = Deno.build.os === "linux";

const SEED = 1;
const SNAPSHOT = policyData({}, SEED);

/** Encrypted listeners without an address. */
const TLS: DnsTls = {
  identity: null,
  serverName: null,
  dot: [],
  doh: [],
  doq: [],
  waitsForDoq: false,
  dotLimits: {
    ...{ connectionsMax: 64, connectionsPerClientMax: 64, queriesMax: 16, idleMs: 10_000 },
    ...{ unreadBytesMax: 1024 * 1024, handshakeMs: 60_000, handshakesMax: 16 },
  },
  doqLimits: {
    ...{ connectionsMax: 64, connectionsPerClientMax: 64, queriesMax: 16, idleMs: 10_000 },
    ...{ requestMs: 60_000, handshakeMs: 60_000, handshakesMax: 16 },
  },
  dohLimits: {
    ...{ connectionsMax: 64, connectionsPerClientMax: 64, requestsMax: 16, idleMs: 10_000 },
    ...{ requestMs: 60_000, unreadBytesMax: 1024 * 1024, handshakeMs: 60_000, handshakesMax: 16 },
  },
  odohSeeds: [],
};

function options(
  listen: readonly HostPort[],
  upstreams: DnsUpstream[] = [],
  tls: DnsTls | null = null,
): DnsOptions {
  return {
    seed: SEED,
    listen,
    upstreams,
    lostDomains: [],
    strategy: { kind: "order", atOnce: 1 },
    openMax: 4_096,
    cacheBytes: 1024 * 1024,
    ttl: { min: 0, max: 86_400, negativeMax: 3_600 },
    serveStale: 0,
    prefetch: false,
    trust: null,
    recursion: null,
    dns64: null,
    rebindingExempt: [],
    failClosed: false,
    isShutIn: true,
    traces: null,
    rateLimit: null,
    neverLimited: [],
    requireClientId: false,
    tcp: {
      connectionsMax: 64,
      connectionsPerClientMax: 64,
      queriesMax: 16,
      idleMs: 10_000,
      unreadBytesMax: 1024 * 1024,
    },
    tls,
  };
}

/** The sockets that isolates with these options take. */
function seatsOf({ listen, tls }: DnsOptions, isolates: number): DnsSeats | null {
  const native = openNative();
  if (native === null) return null;
  return openSeats(native, { listen, dot: tls?.dot ?? [], doh: tls?.doh ?? [] }, isolates);
}

const LOOPBACK: HostPort = { ip: parseIp("127.0.0.1")!, port: 0 };

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const endsAtMs = performance.now() + WAIT_MS_MAX;
  while (!(await condition())) {
    assert(performance.now() < endsAtMs, `${what}: not within ${WAIT_MS_MAX} ms`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Asks once, for the service's own name if no other, and waits for the answer however long. */
async function askUdp({ ip, port }: HostPort, name = OWN_NAME): Promise<Message | null> {
  const socket = createSocket("udp4");
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  socket.on("message", resolve);
  socket.send(encodeQuery(name, Qtype.A, { id: 7 }), port, formatIp(ip));
  const timer = setTimeout(() => resolve(new Uint8Array(0)), WAIT_MS_MAX);
  const packet = await promise;
  clearTimeout(timer);
  await new Promise<void>((closed) => socket.close(() => closed()));
  return decodeMessage(packet);
}

/** Asks on a new connection; `null` when it was one of an isolate that failed, and died with it. */
async function askTcp({ ip, port }: HostPort): Promise<Message | null> {
  using conn = await Deno.connect({ hostname: formatIp(ip), port });
  const query = encodeQuery(OWN_NAME, Qtype.A, { id: 7 });
  const bytes = new Uint8Array(512);
  try {
    await conn.write(Uint8Array.of(0, query.length, ...query));
    const length = await conn.read(bytes);
    return length === null ? null : decodeMessage(bytes.subarray(2, length));
  } catch (error) {
    const { BrokenPipe, ConnectionReset } = Deno.errors;
    if (error instanceof BrokenPipe || error instanceof ConnectionReset) return null;
    throw error;
  }
}

/** A supervisor whose workers fail when they are told to. */
class Failing {
  readonly workers: Worker[] = [];
  readonly supervisor: DnsSupervisor;
  /** Called before each worker is started; what it throws is why there is none. */
  beforeStart: () => void = () => {};
  readonly #hang = new Hang();

  constructor(isolates: number, upstreams: DnsUpstream[] = [], tls: DnsTls | null = null) {
    const all = options([LOOPBACK], upstreams, tls);
    this.supervisor = new DnsSupervisor(all, seatsOf(all, isolates), SNAPSHOT, () => {
      this.beforeStart();
      const url = new URL("../../../tests/e2e/failing_dns_worker.ts", import.meta.url);
      const worker = startWorker("dns", url, SCOPES.dns());
      this.workers.push(worker);
      return worker;
    });
  }

  /** One whose isolates answer. */
  static async start(...args: ConstructorParameters<typeof Failing>): Promise<Failing> {
    for (let i = 1;; i++) {
      const failing = new Failing(...args);
      try {
        await failing.supervisor.start();
        return failing;
      } catch (error) {
        await failing[Symbol.asyncDispose]();
        if (i === START_TRIES_MAX || !/no sign of life/.test(String(error))) throw error;
      }
    }
  }

  get address(): HostPort {
    return this.supervisor.listening[0];
  }

  /** Has the newest worker fail; one that is to hang does so from here on. */
  async fail(type: Failure["type"]): Promise<void> {
    const { memory } = this.#hang;
    const hangs = type === "hang" || type === "spin";
    const failure: Failure = hangs ? { type, memory } : { type };
    this.workers[this.workers.length - 1].postMessage(failure);
    if (hangs) await until("a worker that hangs", () => this.#hang.hangs);
  }

  /** Ends what hangs. */
  goOn(): void {
    this.#hang.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.supervisor.stop(0);
    this.#hang.end();
    // The last descriptors are closed a while after the isolates have ended.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
  }
}

for (const failure of ["throw", "reject", "hang"] as const) {
  Deno.test({
    name: `DnsSupervisor replaces an isolate that fails: ${failure}`,
    permissions: PERMISSIONS,
    ignore: !HAS_NATIVE,
    // Descriptors of the listening sockets are the process's own and stay open.
    sanitizeResources: false,
    fn: async () => {
      await using failing = await Failing.start(1);
      const { supervisor, address } = failing;
      assert.equal((await askUdp(address))?.answers[0]?.data, "127.0.0.1");
      assert.equal((await askTcp(address))?.answers[0]?.data, "127.0.0.1");

      await failing.fail(failure);
      // Asked with nobody there to answer: the sockets are open, and the next isolate reads on.
      await until("an answer over TCP", async () => await askTcp(address) !== null);
      assert.equal((await askUdp(address))?.answers.length, 1);
      // Its successors may crash as well: they have little time to start.
      await until("the crash, counted", () => supervisor.crashes >= 1);
      await until("another worker", () => failing.workers.length >= 2);
      assert.equal((await askUdp(address))?.answers.length, 1);
      assert.deepEqual(supervisor.listening[0], address);
      // Counters belong to the place and not to who fills it: none began anew.
      const { values } = supervisor.counters[0];
      assert(values[Counter.QueriesUdp] >= 2 && values[Counter.QueriesTcp] >= 1);
    },
  });
}

Deno.test({
  name: "DnsSupervisor starts an isolate again after launches that failed, and publishes meanwhile",
  permissions: PERMISSIONS,
  ignore: !HAS_NATIVE,
  sanitizeResources: false,
  fn: async () => {
    await using failing = await Failing.start(2);
    const { supervisor, address } = failing;
    let failures = 0;
    let isMended = false;
    failing.beforeStart = () => {
      if (isMended) return;
      failures++;
      throw new Error("no more of anything");
    };
    await failing.fail("throw");
    await until("launches that failed", () => failures >= 3);
    assert.deepEqual(supervisor.running, { now: 1, wanted: 2 });
    // Nobody waits for one that is not there; it begins with the newest.
    await supervisor.publish({ ...SNAPSHOT, generation: 2 });
    assert.deepEqual(supervisor.running, { now: 1, wanted: 2 }, "published while it was away");
    isMended = true;
    await until("both answer", () => supervisor.running.now === 2);
    assert.equal(supervisor.crashes, 1);
    for (let i = 0; i < 20; i++) assert.equal((await askUdp(address))?.answers.length, 1);
  },
});

Deno.test({
  name: "DnsSupervisor tells of the thread of a hung isolate for as long as it takes a processor",
  permissions: PERMISSIONS,
  ignore: !HAS_NATIVE,
  sanitizeResources: false,
  fn: async () => {
    await using failing = await Failing.start(1);
    const { supervisor, address } = failing;
    const told: string[] = [];
    supervisor.left.onBusy = (isolate) => void told.push(isolate);
    await failing.fail("spin");
    // Where others take the processors, its successors may have no time to start, and end as well.
    await until("it is replaced", () => supervisor.crashes >= 1);
    assert.equal((await askUdp(address))?.answers.length, 1);
    await until("it is told of", () => supervisor.left.problems.length >= 1);
    assert.match(supervisor.left.problems[0], /^dns isolate 0 hung .* restart svc$/);
    assert.equal(told[0], "dns isolate 0");
    failing.goOn();
    await until("its thread has ended", () => supervisor.left.problems.length === 0);
  },
});

/** Opens descriptors until the system gives no more. */
function takeDescriptors(): Disposable {
  const files: Deno.FsFile[] = [];
  for (;;) {
    try {
      files.push(Deno.openSync("/dev/null"));
    } catch {
      return { [Symbol.dispose]: () => files.forEach((file) => file.close()) };
    }
  }
}

Deno.test({
  name: "DnsSupervisor lives through a time without descriptors, and loses none to it",
  permissions: { ...PERMISSIONS, run: ["ls", "prlimit"] },
  ignore: !HAS_NATIVE || !hasProgram("prlimit"),
  sanitizeResources: false,
  fn: async () => {
    const limit = (soft: string) =>
      new Deno.Command("prlimit", { args: ["--pid", `${Deno.pid}`, `--nofile=${soft}:`] }).output();
    const limitBefore = new TextDecoder().decode(
      (await new Deno.Command("prlimit", {
        args: ["--pid", `${Deno.pid}`, "--nofile", "--output=SOFT", "--noheadings"],
      }).output()).stdout,
    ).trim();
    const lines: LogLine[] = [];
    await using cleanup = new AsyncDisposableStack();
    handLogLines((line) => lines.push(line));
    cleanup.defer(() => handLogLines(null));
    await limit("512");
    cleanup.defer(async () => void await limit(limitBefore));
    await using failing = await Failing.start(1);
    const { supervisor, address } = failing;
    const before = await openDescriptors();
    {
      using _taken = takeDescriptors();
      await failing.fail("throw");
      const failures = () =>
        lines.filter(({ message }) => message === "a dns isolate can't be started");
      await until("launches that failed", () => failures().length >= 3);
      assert.match(String(failures()[0].fields.error), /too many open files/);
      assert.deepEqual(supervisor.running, { now: 0, wanted: 1 });
    }
    await until("it answers again", () => supervisor.running.now === 1);
    assert.equal((await askUdp(address))?.answers.length, 1);
    await until("as many descriptors as before", async () => await openDescriptors() <= before);
  },
});

/** Descriptors that this process has open. */
async function openDescriptors(): Promise<number> {
  const { stdout } = await new Deno.Command("ls", { args: [`/proc/${Deno.pid}/fd`] }).output();
  return new TextDecoder().decode(stdout).trim().split("\n").length;
}

/** Descriptors of sockets that this process has open. */
async function openSockets(): Promise<number> {
  const { stdout } = await new Deno.Command("ls", { args: ["-l", `/proc/${Deno.pid}/fd`] })
    .output();
  return new TextDecoder().decode(stdout).split("socket:").length - 1;
}

Deno.test({
  name: "DnsSupervisor closes the sockets of queries that a failed isolate had in flight",
  permissions: { ...PERMISSIONS, run: ["ls"] },
  ignore: !HAS_NATIVE,
  sanitizeResources: false,
  fn: async () => {
    const QUERIES = 60;
    // An upstream that hears everything and says nothing.
    const silent = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
    await using cleanup = new AsyncDisposableStack();
    cleanup.defer(() => silent.close());
    const endpoint = { ip: LOOPBACK.ip, port: (silent.addr as Deno.NetAddr).port };
    const upstream: DnsUpstream = {
      transport: "udp",
      address: "silent",
      endpoint,
      timeoutMs: 20_000,
      domains: [],
    };
    await using failing = await Failing.start(1, [upstream]);
    const client = createSocket("udp4");
    const { ip, port } = failing.address;
    const before = await openSockets();
    for (let i = 0; i < QUERIES; i++) {
      client.send(encodeQuery(`n${i}.example`, Qtype.A, { id: i }), port, formatIp(ip));
    }
    await until("a socket for each", async () => await openSockets() >= before + QUERIES);
    await failing.fail("throw");
    await until("as many sockets as before", async () => await openSockets() <= before + 2);
    assert.equal((await askUdp(failing.address))?.answers.length, 1);
    client.close();
  },
});

Deno.test({
  name: "DnsSupervisor hands a new snapshot to isolates that start and that run",
  permissions: PERMISSIONS,
  ignore: !HAS_NATIVE,
  sanitizeResources: false,
  fn: async () => {
    await using failing = await Failing.start(2);
    const { supervisor } = failing;
    await supervisor.publish({ ...SNAPSHOT, generation: 2 });
    await failing.fail("throw");
    await until("the crash, counted", () => supervisor.crashes >= 1);
    // One of them is gone at this moment; its successor begins with what is published.
    await supervisor.publish({ ...SNAPSHOT, generation: 3 });
    await until("its successor answers", () => supervisor.running.now === 2);
    assert.ok(failing.workers.length >= 3);
    for (let i = 0; i < 20; i++) assert.equal((await askUdp(failing.address))?.answers.length, 1);
  },
});

Deno.test({
  name:
    "DnsSupervisor.flushCaches() has every answer asked for anew, and reports say what there is",
  permissions: PERMISSIONS,
  ignore: !HAS_NATIVE,
  sanitizeResources: false,
  fn: async () => {
    const upstream = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
    await using cleanup = new AsyncDisposableStack();
    let asked = 0;
    const serving = (async () => {
      for await (const [query, from] of upstream) {
        asked++;
        // The question as it came, and one A record behind it, never twice the same; the OPT is left
        // out.
        const question = query.subarray(0, query.length - 11);
        const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 0, 0, 4, 192, 0, 2, asked];
        const response = Uint8Array.of(...question, ...record);
        response.set([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0], 2);
        await upstream.send(response, from);
      }
    })();
    cleanup.defer(async () => {
      upstream.close();
      await serving;
    });
    const endpoint = { ip: LOOPBACK.ip, port: (upstream.addr as Deno.NetAddr).port };
    await using failing = await Failing.start(1, [
      { transport: "udp", address: "counting", endpoint, timeoutMs: 20_000, domains: [] },
    ]);
    const { supervisor } = failing;
    const ask = async () => (await askUdp(failing.address, "www.example"))?.answers[0]?.data;
    const first = await ask();
    assert.match(String(first), /^192\.0\.2\.\d+$/);
    for (let i = 0; i < 3; i++) assert.equal(await ask(), first);
    await until("a report of the answer", () => supervisor.reports[0]?.cacheEntries === 1);
    assert.equal(supervisor.reports[0].upstreams[0].healthy, true);
    await supervisor.flushCaches();
    const second = await ask();
    assert.match(String(second), /^192\.0\.2\.\d+$/);
    assert.notEqual(second, first);
  },
});

Deno.test({
  name: "DnsSupervisor.lookup() finds addresses through the upstreams, and fails with a reason",
  permissions: PERMISSIONS,
  ignore: !HAS_NATIVE,
  sanitizeResources: false,
  fn: async () => {
    const upstream = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
    await using cleanup = new AsyncDisposableStack();
    const serving = (async () => {
      for await (const [query, from] of upstream) {
        const question = query.subarray(0, query.length - 11);
        const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 0, 0, 4, 192, 0, 2, 1];
        const response = Uint8Array.of(...question, ...record);
        response.set([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0], 2);
        await upstream.send(response, from);
      }
    })();
    cleanup.defer(async () => {
      upstream.close();
      await serving;
    });
    const endpoint = { ip: LOOPBACK.ip, port: (upstream.addr as Deno.NetAddr).port };
    const upstreams: DnsUpstream[] = [
      { transport: "udp", address: "fake", endpoint, timeoutMs: 20_000, domains: [] },
    ];
    const { signal } = new AbortController();
    {
      await using stopped = new Failing(1, upstreams);
      const { supervisor } = stopped;
      await assert.rejects(supervisor.lookup("a.example", Qtype.A, signal), /no dns isolate runs/);
    }
    await using failing = await Failing.start(1, upstreams);
    const { supervisor } = failing;
    const { addresses } = await supervisor.lookup("a.example", Qtype.A, signal);
    assert.deepEqual(addresses, ["192.0.2.1"]);
    // It is no query of a client.
    assert.equal(sumOutcome(supervisor.counters, Outcome.Forwarded), 0);
    await assert.rejects(supervisor.lookup("a..b", Qtype.A, signal), /is no name/);
    await failing.fail("hang");
    const late = supervisor.lookup("b.example", Qtype.A, signal);
    await assert.rejects(late, (error) => error instanceof SvcError);
  },
});

Deno.test("DnsSupervisor tells isolates in order what there is while they are opened", {
  permissions: PERMISSIONS,
  ignore: !HAS_NATIVE,
}, async () => {
  // Encrypted DNS is loaded first, and messages come meanwhile.
  await using failing = new Failing(1, [], { ...TLS, dot: [LOOPBACK] });
  const { supervisor } = failing;
  const started = supervisor.start();
  const said: string[] = [];
  failing.workers[0].addEventListener("message", ({ data }) => said.push(data.type));
  const published = supervisor.publish({ ...SNAPSHOT, generation: SNAPSHOT.generation + 1 });
  const flushed = supervisor.flushCaches();
  await started;
  await until("the last is done", () => said.includes("flushed"));
  await Promise.all([published, flushed]);
  const done = said.filter((type) => type === "swapped" || type === "flushed");
  assert.deepEqual(done.slice(0, 2), ["swapped", "flushed"]);
});

Deno.test("DnsSupervisor serves encrypted DNS with the newest certificate after a failure", {
  permissions: PERMISSIONS,
  ignore: !HAS_NATIVE,
}, async () => {
  const [first, second] = [await identityOf("first.example"), await identityOf("second.example")];
  const tls = { ...TLS, identity: first, dot: [LOOPBACK], doq: [LOOPBACK] };
  await using failing = await Failing.start(2, [], tls);
  const { supervisor } = failing;
  const addressOf = (protocol: string) => {
    const found = supervisor.listeners.find((listener) => listener.protocol === protocol);
    assert.ok(found !== undefined && found.address.port > 0, protocol);
    return found.address;
  };
  const [dot, doq] = [addressOf("dot"), addressOf("doq")];
  const shows = async (name: string): Promise<boolean> => {
    try {
      const client = await Client.toTls(dot.port, { servername: name });
      client.socket.destroy();
      if (client.closed) return false; // It did not like the certificate.
      const conn = await Deno.connectQuic<false>({
        ...{ hostname: "127.0.0.1", port: doq.port, serverName: name },
        ...{ caCerts: [AUTHORITY.cert], alpnProtocols: ["doq"] },
      });
      conn.close();
      return true;
    } catch {
      return false;
    }
  };
  assert.deepEqual([await shows("first.example"), await shows("second.example")], [true, false]);
  supervisor.renewCertificate(second);
  await until("the second one shows", () => shows("second.example"));
  // The first isolate is the one that has the QUIC socket.
  failing.workers[0].postMessage({ type: "throw" });
  await until("it is noticed", () => supervisor.crashes >= 1);
  await until("the port is served again", () => shows("second.example"));
  assert.deepEqual([addressOf("dot"), addressOf("doq")], [dot, doq]);
  assert.equal(await shows("first.example"), false);
});
