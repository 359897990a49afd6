// Goal: the service starts or says why not, and ends without leaving a query behind. Method: exit codes
// and messages of whole runs; signals while an upstream holds answers back.

import assert from "node:assert/strict";
import { parseHostPort } from "../../src/addr/mod.ts";
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";
import { ask, decode, nextId, TcpClient, UdpClient } from "./clients.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import {
  freePort,
  OwnDirectory,
  pause,
  PERMISSIONS,
  runProgram,
  Service,
  svcCommand,
  until,
} from "./harness.ts";

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  Deno.test(`svc run finishes queries in flight on ${signal}`, {
    permissions: PERMISSIONS,
  }, async () => {
    const held = Promise.withResolvers<void>();
    await using upstream = await FakeUpstream.start(async (query) => {
      await held.promise;
      return address(query);
    });
    await using service = await Service.start({
      config: { server: { workers: 2 }, upstream: [{ address: upstream.text, timeout: "5s" }] },
    });
    using udp = await UdpClient.open(service.address);
    using tcp = await TcpClient.connect(service.address);
    udp.send(encodeQuery("udp.example", Qtype.A, { id: 1 }));
    await tcp.send(...[2, 3].map((id) => encodeQuery(`tcp${id}.example`, Qtype.A, { id })));
    for (const name of ["udp", "tcp2", "tcp3"]) await upstream.asked(`${name}.example`);
    service.kill(signal);
    await service.logged("stopping", { signal });
    held.resolve();
    await until("the answer over UDP", () => udp.received.length > 0);
    assert.equal(decode(udp.received[0]).answers.length, 1);
    const ids = [(await tcp.message()).id, (await tcp.message()).id];
    assert.deepEqual(ids.sort(), [2, 3]);
    assert.equal(await tcp.next(), null);
    assert.equal((await service.ended).code, 0);
    service.assertCalm();
  });
}

Deno.test("svc run ends in time while upstreams are silent", {
  permissions: PERMISSIONS,
}, async () => {
  await using upstream = await FakeUpstream.start(() => null);
  // Far longer than the end of the service may take.
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text, timeout: "30s" }] },
  });
  using udp = await UdpClient.open(service.address);
  using tcp = await TcpClient.connect(service.address);
  using idle = await TcpClient.connect(service.address);
  await tcp.send(encodeQuery("tcp.example", Qtype.A, { id: nextId() }));
  udp.send(encodeQuery("udp.example", Qtype.A, { id: nextId(), edns: {} }));
  for (const name of ["udp", "tcp"]) await upstream.asked(`${name}.example`);
  assert.equal((await service.stop()).code, 0);
  await until("the answer over UDP", () => udp.received.length > 0);
  assert.equal(decode(udp.received[0]).rcode, Rcode.ServFail);
  assert.equal((await tcp.message()).rcode, Rcode.ServFail);
  assert.deepEqual([await tcp.next(), await idle.next()], [null, null]);
  service.assertCalm();
});

Deno.test("svc run ends at once when nothing waits, and starts again on the same port", {
  permissions: PERMISSIONS,
}, async () => {
  const listen = [`127.0.0.1:${freePort()}`];
  await using first = await Service.start({ config: { server: { listen } } });
  using tcp = await TcpClient.connect(first.address);
  await tcp.send(encodeQuery("svc.test", Qtype.A));
  await tcp.message();
  assert.equal((await first.stop()).code, 0);
  await using second = await Service.start({ config: { server: { listen } } });
  assert.equal((await ask(second.address, "health.svc.test", Qtype.A)).answers.length, 1);
  assert.equal((await second.stop()).code, 0);
});

Deno.test("svc run names a port that is in use and exits with 1", {
  permissions: PERMISSIONS,
}, async (t) => {
  for (const kind of ["tcp", "udp"] as const) {
    await t.step(kind, async () => {
      const at = { hostname: "127.0.0.1", port: 0 };
      const other = kind === "tcp"
        ? Deno.listen(at)
        : Deno.listenDatagram({ transport: "udp", ...at });
      await using cleanup = new AsyncDisposableStack();
      cleanup.defer(async () => await other.close());
      const { port } = other.addr as Deno.NetAddr;
      await using service = await Service.launch({
        config: { server: { listen: [`127.0.0.1:${port}`] } },
      });
      assert.equal((await service.ended).code, 1);
      const said = service.rest.join("\n");
      assert.match(said, new RegExp(`${kind} 127\\.0\\.0\\.1:${port}: .*in use`), said);
      assert.equal(service.rest.length, 1, said);
    });
  }
});

/** Configurations that can't be used, and what is said of them. */
const CONFIGS: readonly (readonly [string, RegExp])[] = [
  ['[server]\nlisten = ["nowhere"]\n', /svc\.toml:2: server\.listen/],
  ["[server]\nworker = 1\n", /svc\.toml:2: server\.worker/],
  ["[[upstream]]\naddress = 53\n", /svc\.toml:2: upstream/],
  ['[cache]\nsize = "lots"\n', /svc\.toml:2: cache\.size/],
  ["[server\n", /svc\.toml:1: /],
];

Deno.test("svc run names what is wrong with a configuration and exits with 2", {
  permissions: PERMISSIONS,
}, async (t) => {
  const directory = await Deno.makeTempDir({ prefix: "svc-e2e-config-" });
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(directory, { recursive: true }));
  for (const [text, pattern] of CONFIGS) {
    await t.step(text.replaceAll("\n", " "), async () => {
      const file = `${directory}/svc.toml`;
      await Deno.writeTextFile(file, text);
      const [command, ...args] = svcCommand(["run", "--config", file]);
      const { code, stderr } = await runProgram(command, ...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, pattern);
      assert.doesNotMatch(stderr, /\n\s+at /, "no stack");
    });
  }
});

Deno.test("svc run answers again after it was stopped and continued", {
  permissions: PERMISSIONS,
}, async () => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  service.kill("SIGSTOP");
  const waiting = ask(service.address, "asleep.example", Qtype.A);
  await pause(200);
  service.kill("SIGCONT");
  assert.equal((await waiting).answers.length, 1);
  assert.equal((await service.stop()).code, 0);
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  Deno.test(`svc run ends as it should on ${signal} while it starts`, {
    permissions: PERMISSIONS,
  }, async () => {
    await using own = await OwnDirectory.make();
    {
      await using service = await Service.launch({ directory: own.path });
      await service.logged("starting");
      service.kill(signal);
      await service.logged("stopped");
      assert.equal((await service.ended).code, 0);
      service.assertCalm();
    }
    // What it began is whole.
    await using again = await Service.start({ directory: own.path });
    assert.equal((await ask(again.address, "health.svc.test", Qtype.A)).answers.length, 1);
    again.assertCalm();
  });
}

Deno.test("svc run lives through SIGHUPs at any time", { permissions: PERMISSIONS }, async () => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.launch({
    config: { upstream: [{ address: upstream.text }] },
  });
  await service.logged("starting");
  for (let i = 0; i < 50; i++) service.kill("SIGHUP");
  const { listen } = await service.logged("answering");
  const at = parseHostPort((listen as string[])[0]);
  assert.ok(at !== null);
  await service.logged("serving the API");
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 20; i++) service.kill("SIGHUP");
    assert.equal((await ask(at, `n${round}.example`, Qtype.A)).answers.length, 1);
  }
  await service.logged("reloading the lists");
  service.kill("SIGTERM");
  await service.logged("stopping");
  for (let i = 0; i < 50; i++) service.kill("SIGHUP");
  assert.equal((await service.ended).code, 0);
  service.assertCalm();
});
