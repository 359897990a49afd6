// Goal: a service is replaced while it is used, and nobody who uses it notices. Method: SIGUSR2 to
// the real thing under load of every kind, and programs and configurations that can't take over.
//
// `SVC_UPGRADES=10 SVC_UPGRADE_QUERIES=1000000` runs as many upgrades under as many queries; left out
// there are two under a load that lasts for seconds.

import assert from "node:assert/strict";
import { formatHostPort, formatIp, type HostPort } from "../../src/addr/mod.ts";
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import { FrameReader } from "../../src/transport/mod.ts";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import {
  ask,
  decode,
  dnsperf,
  framed,
  type Load,
  nextId,
  TcpClient,
  UdpClient,
} from "./clients.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import {
  type ConfigText,
  freePort,
  hasProgram,
  OwnDirectory,
  pause,
  PERMISSIONS,
  PROGRAM,
  runProgram,
  Service,
  testConfig,
  toml,
  until,
} from "./harness.ts";

const UPGRADES = Number(Deno.env.get("SVC_UPGRADES") ?? 2);
const QUERIES = Number(Deno.env.get("SVC_UPGRADE_QUERIES") ?? 20_000);
const UDP_PER_SECOND = UPGRADES > 2 ? 25_000 : 4_000;
/** Most that is on its way on connections while they end, where the machine is busy. */
const ON_THEIR_WAY_PART = 0.02;
/** So few that hardly two are on their way on one connection when it ends. */
const TCP_PER_SECOND = 500;
/** Connections over TCP and TLS on which bursts are sent. */
const BURSTING = 8;
const DOMAIN = "dns.example";
const OWN = "own.example";
const options = {
  permissions: { ...PERMISSIONS, sys: [...PERMISSIONS.sys] },
  ignore: Deno.build.os !== "linux",
};

/** Asks over QUIC on a connection of its own. */
async function askQuic({ ip, port }: HostPort, ca: string, name: string): Promise<Uint8Array> {
  const conn = await Deno.connectQuic<false>({
    ...{ hostname: formatIp(ip), port, serverName: DOMAIN },
    ...{ caCerts: [ca], alpnProtocols: ["doq"] },
  });
  try {
    const stream = await conn.createBidirectionalStream();
    const writer = stream.writable.getWriter();
    await writer.write(framed([encodeQuery(name, Qtype.A, { id: 0 })]));
    await writer.close();
    const bytes: number[] = [];
    for await (const chunk of stream.readable) bytes.push(...chunk);
    return Uint8Array.from(bytes.slice(2));
  } finally {
    conn.close();
  }
}

/** Does something again and again, on a connection of its own each time; how often, and what failed. */
async function again(work: () => Promise<void>, isOver: () => boolean) {
  const failures: string[] = [];
  let count = 0;
  for (; !isOver(); count++) {
    await work().catch((error) => failures.push(String(error)));
    await pause(5);
  }
  return { count, failures };
}

async function askApi(base: string): Promise<void> {
  const response = await fetch(`${base}/health`, { headers: { connection: "close" } });
  await response.body?.cancel();
  assert.equal(response.status, 200);
}

/** Makes a record; the ID of one that was taken goes to `taken`. It may be refused for a moment. */
async function change(base: string, taken: string[]): Promise<void> {
  const record = { name: `r${nextId()}.example`, type: "A", value: "192.0.2.8" };
  const response = await fetch(`${base}/records`, {
    method: "POST",
    headers: { "content-type": "application/json", connection: "close" },
    body: JSON.stringify(record),
  });
  const text = await response.text();
  assert.ok([201, 503].includes(response.status), `${response.status} ${text}`);
  if (response.status === 201) taken.push(JSON.parse(text).id);
  await pause(50);
}

async function askTcp(server: HostPort): Promise<void> {
  using tcp = await TcpClient.connect(server);
  await tcp.send(encodeQuery(OWN, Qtype.A, { id: 1 }));
  assert.equal((await tcp.message()).answers.length, 1);
}

async function connectTls({ ip, port }: HostPort, ca: string): Promise<Deno.TlsConn> {
  const conn = await Deno.connect({ hostname: formatIp(ip), port });
  return await Deno.startTls(conn, { hostname: DOMAIN, caCerts: [ca] });
}

async function askTls(server: HostPort, ca: string): Promise<void> {
  using tls = await connectTls(server, ca);
  await tls.write(framed([encodeQuery(OWN, Qtype.A, { id: 1 })]));
  const bytes = new Uint8Array(512);
  assert.ok((await tls.read(bytes) ?? 0) > 2);
}

/** Queries that are sent at once on a connection that stays. */
const BURST = 8;

/**
 * Asks on one connection after the other, as long as each lasts, in bursts: half of what is asked
 * somebody else has to be asked for. A burst comes in whole, so it is answered whole, unless it was on
 * its way when the end came: then its client asks again on the next one (RFC 7766 §6.2.4).
 */
async function askInBursts(connect: () => Promise<Deno.Conn>, isOver: () => boolean) {
  const failures: string[] = [];
  const bytes = new Uint8Array(64 * 1024);
  let [count, crossed] = [0, 0];
  while (!isOver()) {
    using conn = await connect();
    let hasEnded = false;
    const read = async () => {
      const length = await conn.read(bytes);
      hasEnded = length === null;
      return bytes.subarray(0, length ?? 0);
    };
    try {
      let reading = read(); // All the time, so that the end is heard at once.
      while (!hasEnded && !isOver()) {
        const queries = Array.from({ length: BURST }, (_, id) => {
          const name = id % 2 === 0 ? OWN : `burst-${nextId()}.example`;
          return encodeQuery(name, Qtype.A, { id });
        });
        await conn.write(framed(queries));
        const frames = new FrameReader();
        let answered = 0;
        while (answered < BURST && !hasEnded) {
          frames.push(await reading);
          while (frames.next() !== null) answered++;
          frames.keep();
          if (!hasEnded) reading = read();
        }
        count++;
        if (answered === 0) crossed++;
        else if (answered < BURST) failures.push(`${answered} of ${BURST} answered`);
        await Promise.race([reading, pause(Math.random() * 20)]);
      }
      await conn.closeWrite();
      await reading;
    } catch (error) {
      failures.push(String(error)); // A reset, or TLS without its end.
    }
  }
  return { count, crossed, failures };
}

Deno.test({
  ...options,
  name: "nobody who asks a service notices that it is upgraded",
  ignore: options.ignore || !hasProgram("dnsperf"),
}, async (t) => {
  await using stack = new AsyncDisposableStack();
  const { path: directory } = stack.use(await OwnDirectory.make());
  const authority = await makeAuthority();
  await writePair(directory, "dns", await authority.issue({ names: [DOMAIN] }));
  const held = Promise.withResolvers<void>();
  const upstream = stack.use(
    await FakeUpstream.start(async (query) => {
      if (query.name.startsWith("held")) await held.promise;
      return address(query);
    }),
  );
  const doq = `127.0.0.1:${freePort()}`;
  const listen = ["127.0.0.1:0"];
  const service = stack.use(
    await Service.start({
      directory,
      config: {
        upstream: [{ address: upstream.text, timeout: "5s" }],
        server: {
          listen,
          workers: 2,
          tls: { cert: "dns.crt", key: "dns.key", server_name: DOMAIN, dot: listen, doq: [doq] },
          rate_limit: { queries_per_second: 0 },
        },
      },
    }),
  );
  const server = service.address;
  const [dot] = service.encrypted.dot;
  const [quic] = service.encrypted.doq;
  const api = await Api.of(service);
  await api.create("records", { name: OWN, type: "A", value: "192.0.2.7" });
  await ask(server, "cached.example", Qtype.A);

  await t.step("what it had in memory is there behind it", async () => {
    const { until: pausedUntil } = await api.call("PUT", "pause", { seconds: 600 });
    const test = await api.call("POST", "leak-tests");
    await ask(server, test.names[3], Qtype.A);
    await until(
      "the look-up",
      async () => (await api.call("GET", `leak-tests/${test.id}`)).reached === 1,
    );
    const asked = upstream.seen.length;
    await service.upgrade();
    assert.equal((await api.call("GET", "pause")).until ?? pausedUntil, pausedUntil);
    assert.equal((await api.call("GET", "status")).paused_until, pausedUntil);
    assert.equal((await api.call("GET", `leak-tests/${test.id}`)).reached, 1);
    await ask(server, test.names[4], Qtype.A);
    await until(
      "another look-up",
      async () => (await api.call("GET", `leak-tests/${test.id}`)).reached === 2,
    );
    // Each isolate has a cache; one of them had the answer.
    const answers = [];
    for (let i = 0; i < 8; i++) answers.push(await ask(server, "cached.example", Qtype.A));
    assert.ok(answers.every(({ answers }) => answers.length === 1));
    assert.ok(upstream.seen.length <= asked + 1, "the cache came along");
    assert.equal((await ask(server, OWN, Qtype.A)).answers.length, 1);
    await api.call("DELETE", "pause");
    await until(
      "entries of both",
      async () => (await api.call("GET", "querylog?name=cached.example")).entries.length >= 9,
    );
  });

  await t.step("answers that are awaited come", async () => {
    using udp = await UdpClient.open(server);
    using tcp = await TcpClient.connect(server);
    udp.send(encodeQuery("held-udp.example", Qtype.A, { id: 1 }));
    await tcp.send(encodeQuery("held-tcp.example", Qtype.A, { id: 2 }));
    for (const name of ["held-udp", "held-tcp"]) await upstream.asked(`${name}.example`);
    const upgraded = service.upgrade();
    await service.logged("stopping", { signal: "SIGUSR2" }, 2);
    held.resolve();
    await until("the answer over UDP", () => udp.received.length > 0);
    assert.equal(decode(udp.received[0]).answers.length, 1);
    assert.equal((await tcp.message()).answers.length, 1);
    await upgraded;
  });

  await t.step("nothing is lost under load", async () => {
    const lines = (count: number) => Array.from({ length: count }, () => `${OWN} A`);
    let isOver = false;
    const seconds = QUERIES / UDP_PER_SECOND;
    const load = (perSecond: number, ...args: string[]): Promise<Load> =>
      dnsperf(server, directory, lines(seconds * perSecond), perSecond, ...args);
    const all = Promise.all([
      load(UDP_PER_SECOND),
      load(TCP_PER_SECOND, "-m", "tcp", "-c", "10"), // Over TLS it ends itself where a connection ends.
    ]);
    const taken: string[] = [];
    const once = {
      changes: again(() => change(api.base, taken), () => isOver),
      http: again(() => askApi(api.base), () => isOver),
      tcp: again(() => askTcp(server), () => isOver),
      tls: again(() => askTls(dot, authority.cert), () => isOver),
    };
    const connectTcp = () => Deno.connect({ hostname: formatIp(server.ip), port: server.port });
    const bursts = Promise.all(
      Array.from({ length: BURSTING }, (_, i) => {
        const connect = i % 2 === 0 ? connectTcp : () => connectTls(dot, authority.cert);
        return askInBursts(connect, () => isOver);
      }),
    );
    for (let i = 0; i < UPGRADES; i++) {
      await service.upgrade();
      // Its port is free a moment after: a client sends again.
      assert.equal(decode(await askQuic(quic, authority.cert, OWN)).answers.length, 1);
    }
    const [udp, tcp] = await all;
    isOver = true;
    for (const [name, { sent, completed, lost, text }] of Object.entries({ udp, tcp })) {
      // On its way when a connection ends: its client asks again on the next one (RFC 7766 §6.2.4).
      const lostMax = name === "udp" ? 0 : sent * ON_THEIR_WAY_PART;
      assert.ok(lost <= lostMax, `${name}: ${text}`);
      assert.equal(completed + lost, sent, name);
      console.log(`${name}: ${completed} of ${sent} answered over ${UPGRADES} upgrades`);
    }
    for (const [name, asked] of Object.entries(once)) {
      const { count, failures } = await asked;
      assert.deepEqual(failures, [], `${name}, of ${count}`);
      console.log(`${name}: ${count} connections, none refused`);
    }
    const { items } = await api.call("GET", "records");
    const ids = new Set(items.map(({ id }: { id: string }) => id));
    assert.deepEqual(taken.filter((id) => !ids.has(id)), [], `of ${taken.length} changes`);
    const sum = { count: 0, crossed: 0 };
    for (const { count, crossed, failures } of await bursts) {
      assert.deepEqual(failures, []);
      sum.count += count;
      sum.crossed += crossed;
    }
    console.log(
      `bursts: ${sum.count}, none cut; ${sum.crossed} on their way at the end of a connection`,
    );
  });
  service.assertCalm();
});

Deno.test({
  ...options,
  name: "who can't take over changes nothing, and the status says why",
}, async (t) => {
  await using stack = new AsyncDisposableStack();
  const { path: directory } = stack.use(await OwnDirectory.make());
  const config = { server: { listen: ["127.0.0.1:0"] } };
  const main = PROGRAM === undefined ? "tests/e2e/failing_upgrade.ts" : undefined;
  const service = stack.use(
    await Service.start({ directory, config, ...(main !== undefined && { main }) }),
  );
  const api = await Api.of(service);
  const write = async (changed: ConfigText) =>
    await Deno.writeTextFile(`${directory}/svc.toml`, toml(testConfig(changed)));
  let refusals = 0;
  const refused = async (reason: RegExp) => {
    service.kill("SIGUSR2");
    const { error } = await service.logged("not upgraded, this program goes on", {}, ++refusals);
    assert.match(String(error), reason);
    const { problems } = await api.call("GET", "status");
    assert.ok(problems.some((problem: string) => reason.test(problem)), problems.join("\n"));
    assert.equal((await ask(service.address, "health.svc.test", Qtype.A)).answers.length, 1);
  };
  const stays = async () => {
    // What is changed now is there behind a restart as well.
    const id = await api.create("records", {
      name: `r${refusals}.example`,
      type: "A",
      value: "192.0.2.9",
    });
    assert.equal((await api.call("GET", `records/${id}`)).id, id);
  };

  await t.step("a configuration that is not valid", async () => {
    await write({ server: { listen: ["nowhere"] } });
    await refused(/svc\.toml:\d+: server\.listen/);
    await stays();
  });
  await t.step("one that needs what the running program was denied", async () => {
    await write({ ...config, store: { path: "../elsewhere" } });
    await refused(/could not (write|read) .*elsewhere.*: restart svc/);
    await stays();
  });
  await t.step("an address that somebody else has", async () => {
    using other = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = other.addr as Deno.NetAddr;
    await write({ server: { listen: ["127.0.0.1:0", `127.0.0.1:${port}`] } });
    await refused(new RegExp(`tcp 127\\.0\\.0\\.1:${port}: .*in use`));
    await stays();
  });
  await t.step("a store that another process has: it is asked for until it is free", async () => {
    await write(config);
    using lock = await Deno.open(`${directory}/store/lock`, { read: true, write: true });
    const isHeld = lock.lock(true); // As soon as the running program leaves it.
    service.kill("SIGUSR2");
    await isHeld;
    await service.logged("the store is not had back yet: changes are refused until it is");
    const { problems } = await api.call("GET", "status");
    const isTold = (problem: string) => /the store is not had back yet.*is in use/.test(problem);
    assert.ok(problems.some(isTold), problems.join("\n"));
    const refusal = await api.call("POST", "rules", { rule: "||ads.example^" });
    assert.deepEqual([refusal.status, refusal.error.code], [503, "unavailable"]);
    assert.equal((await api.call("GET", "records")).items.length, refusals);
    assert.equal((await ask(service.address, "health.svc.test", Qtype.A)).answers.length, 1);
    await lock.unlock();
    await service.logged("the store is had back");
    await service.logged("not upgraded, this program goes on", {}, ++refusals);
    const after = await api.call("GET", "status");
    assert.equal(after.problems.some(isTold), false, after.problems.join("\n"));
    await stays();
  });
  await t.step("a program that fails with everything in its hands", async () => {
    if (PROGRAM !== undefined) return;
    await write(config);
    await refused(/thrown by the test/);
    await stays();
    await until(
      "three records",
      async () => (await api.call("GET", "records")).items.length === refusals,
    );
  });
  assert.equal(formatHostPort(service.address).startsWith("127.0.0.1"), true);
  await t.step("a stop while one is under way, which leaves nobody behind", async () => {
    const { port } = service.address;
    // The next program waits for its configuration, and nobody writes it.
    await Deno.remove(`${directory}/svc.toml`);
    assert.equal((await runProgram("mkfifo", `${directory}/svc.toml`)).code, 0);
    service.kill("SIGUSR2");
    service.kill("SIGUSR2");
    await service.logged("starting the next program", {}, refusals + 1);
    assert.equal((await service.stop()).code, 0);
    await until("nobody has its sockets", () => {
      try {
        Deno.listen({ hostname: "127.0.0.1", port }).close();
        return true;
      } catch {
        return false;
      }
    });
    const starts = service.logs.filter(({ message }) => message === "starting the next program");
    assert.equal(starts.length, refusals + 1, "one for both");
  });
});
