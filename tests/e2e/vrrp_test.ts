// Goal: two boxes with one address, as an operator has them: whatever happens to one, the other
// answers, and who holds the address is never in doubt for long. Method: `svc run` and `svc vrrp` in
// namespaces on a bridge, a client that asks all the time, and everything that can happen done to one.
import assert from "node:assert/strict";
import { hasProgram, PERMISSIONS, runProgram, Service, svcCommand, until } from "./harness.ts";
import { HAS_NAMESPACES } from "./network.ts";
import {
  ADDRESSES,
  Asking,
  FLOATING,
  NodeFiles,
  Segment,
  startKeepalived,
  startVrrp,
  vrrpConfig,
} from "./segment.ts";

const options = { permissions: PERMISSIONS, ignore: !HAS_NAMESPACES };

async function status(segment: Segment, i: number, file: string): Promise<string> {
  const [program, ...args] = [
    ...segment.on(i),
    ...svcCommand(["vrrp", "--status", "--config", file]),
  ];
  const { stdout, stderr } = await runProgram(program, ...args);
  return stdout + stderr;
}

/** Each thread's IDs and rights; one line if all are alike. */
async function rightsOf(pid: number): Promise<string[]> {
  const script = `cd /proc/${pid}/task; for t in *; do
    grep -hE '^(Uid|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs):' $t/status |
    tr '\\n\\t' '  '; echo; done | sort -u`;
  const { stdout } = await runProgram("sh", "-c", script);
  return stdout.trim().split("\n").map((line) => line.trim());
}

const NET_ADMIN = "0000000000001000";
const ALL_SETS = ["Inh", "Prm", "Eff", "Bnd", "Amb"].map((set) => `Cap${set}: ${NET_ADMIN}`);

for (const unicast of [false, true]) {
  const mode = unicast ? "unicast" : "multicast";
  Deno.test(`svc vrrp moves an address between two nodes, ${mode}`, options, async (t) => {
    await using segment = await Segment.make();
    await using files = await NodeFiles.make();
    // Every address, or those two alone, of which one is not there most of the time.
    const listen = (i: number) => unicast ? [ADDRESSES[i], FLOATING] : ["0.0.0.0"];
    const configs = [0, 1].map((i) => vrrpConfig(i, { unicast }, listen(i)));
    const paths = [await files.write("0", configs[0]), await files.write("1", configs[1])];
    const serve = (i: number) => Service.start({ config: configs[i], prefix: segment.on(i) });
    let dns = await serve(0);
    await using _dns0 = { [Symbol.asyncDispose]: () => dns[Symbol.asyncDispose]() };
    await using _dns1 = await serve(1);
    let first = startVrrp(segment, 0, paths[0]);
    await using _first = { [Symbol.asyncDispose]: () => first[Symbol.asyncDispose]() };
    await using second = startVrrp(segment, 1, paths[1]);
    let seen = 0;
    /** Waits for what the second node says next. */
    const next = async (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
      const line = await second.logged(message, fields, seen);
      seen = second.logs.indexOf(line) + 1;
    };
    await using asking = new Asking(segment);

    await t.step("the higher priority holds it, the other stands by", async () => {
      await first.logged("standing by as backup", { reason: "started", address: FLOATING });
      await first.logged("holding the address", { address: FLOATING, interface: segment.device });
      await segment.settled(0);
      await next("standing by as backup");
    });

    await t.step("--status tells who holds it, and why", async () => {
      const [here, there] = [
        await status(segment, 0, paths[0]),
        await status(segment, 1, paths[1]),
      ];
      assert.match(here, /^holder +this node$/m);
      assert.match(here, /^role +holder for [\d.]+ s: the peer /m);
      assert.match(there, /^holder +the peer$/m);
      assert.match(there, /^peer +192\.168\.77\.1, priority 150, heard [\d.]+ s ago$/m);
    });

    await t.step("every thread has CAP_NET_ADMIN alone", async () => {
      const rights = await rightsOf(first.pid);
      assert.equal(rights.length, 1, rights.join("\n"));
      for (const set of [...ALL_SETS, "NoNewPrivs: 1"]) assert.ok(rights[0].includes(set), set);
    });

    await t.step("an address removed by hand is added again", async () => {
      await segment.changeAddress(0, "delete", FLOATING);
      await first.logged("somebody has removed the address: adding it again");
      await segment.settled(0);
    });

    await t.step("a copy added by hand is removed", async () => {
      await segment.changeAddress(1, "add", FLOATING);
      await next("removing a copy of the address that this node does not hold");
      await segment.settled(0);
    });

    await t.step("a node that stops hands over, and takes it back when it returns", async () => {
      assert.equal((await first.end("SIGTERM")).code, 0);
      assert.ok(!(await segment.holders()).includes(0), "nothing is left behind");
      await next("taking over", { reason: "the peer gave it up" });
      await next("holding the address");
      await segment.settled(1);
      first = startVrrp(segment, 0, paths[0]);
      await next("standing by as backup", { reason: "the peer has a higher priority" });
      await segment.settled(0);
    });

    await t.step("a node whose DNS hangs hands over until it answers again", async () => {
      dns.kill("SIGSTOP");
      await next("taking over", { reason: "the peer gave it up" });
      await segment.settled(1);
      await first.logged("standing by as backup", { reason: "DNS does not answer on this node" });
      dns.kill("SIGCONT");
      await next("standing by as backup");
      await segment.settled(0);
    });

    await t.step("a node whose DNS ends hands over until it is there again", async () => {
      dns.kill("SIGKILL");
      await next("taking over", { reason: "the peer gave it up" });
      await segment.settled(1);
      await dns[Symbol.asyncDispose]();
      dns = await serve(0);
      await next("standing by as backup");
      await segment.settled(0);
    });

    await t.step("a node that is cut off is followed, and one holds after the split", async () => {
      await segment.setCut(0, true);
      await next("taking over", { reason: "the peer is silent" });
      assert.deepEqual(await segment.holders(), [0, 1], "neither can know of the other");
      await segment.setCut(0, false);
      await next("standing by as backup", { reason: "the peer has a higher priority" });
      await segment.settled(0);
    });

    await t.step("a crash leaves a copy behind, which the next start removes", async () => {
      await first.end("SIGKILL");
      await next("taking over", { reason: "the peer is silent" });
      assert.deepEqual(await segment.holders(), [0, 1]);
      first = startVrrp(segment, 0, paths[0]);
      await first.logged("removing a copy of the address that this node does not hold");
      await segment.settled(0);
    });

    await t.step("a link that is lost for long is a node that is gone", async () => {
      await segment.setLink(0, false);
      await next("taking over", { reason: "the peer is silent" });
      await first.logged("standing by as backup", {
        reason: "the interface has no link or no address",
      });
      await segment.setLink(0, true);
      await segment.settled(0);
    });

    await t.step("an interface that goes away and comes back is used again", async () => {
      await segment.unplug(0);
      await first.logged("vrrp.interface: there is no such interface: waiting for it");
      await segment.settled(1);
      await segment.plug(0);
      await first.logged("the interface is there");
      await segment.settled(0);
    });

    await t.step("an interface that is renamed does not keep the address", async () => {
      await segment.rename(0, segment.device, "seg9");
      await segment.settled(1);
      await segment.rename(0, "seg9", segment.device);
      await segment.settled(0);
    });

    const { asked, lost, gaps } = await asking.stop();
    const list = gaps.map(({ lengthMs }) => `${lengthMs.toFixed(0)} ms`).join(", ");
    console.log(`${mode}: ${lost} of ${asked} queries lost, every 20 ms one; gaps: ${list}`);
    assert.ok(asked > 500 && lost < asked / 2, `${lost} of ${asked} lost`);
    for (const node of [first, second]) {
      assert.deepEqual(node.logs.filter(({ level }) => level === "error"), []);
      assert.deepEqual(node.rest, []);
    }
  });
}

Deno.test("svc vrrp with preempt = false leaves the address where it is", options, async () => {
  await using segment = await Segment.make();
  await using files = await NodeFiles.make();
  const config = (i: number) => vrrpConfig(i, { preempt: false });
  const paths = [await files.write("0", config(0)), await files.write("1", config(1))];
  await using _dns0 = await Service.start({ config: config(0), prefix: segment.on(0) });
  await using _dns1 = await Service.start({ config: config(1), prefix: segment.on(1) });
  await using second = startVrrp(segment, 1, paths[1]);
  await second.logged("holding the address");
  await using first = startVrrp(segment, 0, paths[0]);
  await until("the first node has heard it for long", async () => {
    const text = await status(segment, 0, paths[0]);
    return Number(/received (\d+)/.exec(text)?.[1]) > 20;
  });
  assert.deepEqual(await segment.holders(), [1]);
  await second.end("SIGTERM");
  await first.logged("taking over", { reason: "the peer gave it up" });
  await first.logged("holding the address");
  assert.deepEqual(await segment.holders(), [0]);
});

const hasKeepalived = HAS_NAMESPACES && hasProgram("keepalived");

for (const unicast of [false, true]) {
  Deno.test({
    name: `svc vrrp agrees with keepalived, ${unicast ? "unicast" : "multicast"}`,
    permissions: PERMISSIONS,
    ignore: !hasKeepalived,
    fn: async (t) => {
      await using segment = await Segment.make();
      await using files = await NodeFiles.make();
      const config = vrrpConfig(0, { unicast, interval_ms: 500 });
      const file = await files.write("0", config);
      await using _dns = await Service.start({ config, prefix: segment.on(0) });
      const keepalived = (priority: number) =>
        startKeepalived(segment, files, { priority, unicast, interval: 0.5 });
      await using lower = await keepalived(100);
      await until("keepalived holds it alone", async () => (await segment.holders())[0] === 1);
      await using first = startVrrp(segment, 0, file);
      // Queries that keep the client's table of neighbours fresh.
      await using _asking = new Asking(segment);

      await t.step("svc has the higher priority and takes it", async () => {
        await first.logged("taking over", { reason: "the peer has a lower priority" });
        await segment.settled(0);
      });
      await t.step(
        "svc is cut off, keepalived follows, and svc has it after the split",
        async () => {
          await segment.setCut(0, true);
          await until("both hold it", async () => (await segment.holders()).length === 2);
          await segment.setCut(0, false);
          await segment.settled(0);
        },
      );
      await t.step("svc stops, keepalived takes over", async () => {
        await first.end("SIGTERM");
        await until("keepalived holds it", async () => (await segment.holders())[0] === 1);
      });
      await using again = startVrrp(segment, 0, file);
      await t.step("svc takes it back", () => segment.settled(0));
      await t.step("keepalived of a higher priority takes it", async () => {
        await lower.end("SIGTERM");
        await using higher = await keepalived(200);
        await again.logged("standing by as backup", { reason: "the peer has a higher priority" });
        await segment.settled(1);
        await segment.setCut(1, true);
        await again.logged("taking over", { reason: "the peer is silent" });
        await segment.setCut(1, false);
        await segment.settled(1);
        await higher.end("SIGTERM");
      });
      await t.step("keepalived stops, svc takes over", () => segment.settled(0));
    },
  });
}

Deno.test("svc vrrp goes on as the next program, and the address stays", options, async (t) => {
  await using segment = await Segment.make();
  await using files = await NodeFiles.make();
  // The other node waits three times as long: more than a slow machine takes for a start.
  const configs = [0, 1].map((i) => vrrpConfig(i, { interval_ms: 3_000 }));
  const paths = [await files.write("0", configs[0]), await files.write("1", configs[1])];
  const serve = (i: number) => Service.start({ config: configs[i], prefix: segment.on(i) });
  await using _dns0 = await serve(0);
  await using _dns1 = await serve(1);
  await using first = startVrrp(segment, 0, paths[0]);
  await first.logged("holding the address");
  await using second = startVrrp(segment, 1, paths[1]);
  await second.logged("DNS answers on this node");

  await t.step("as the same process, with the same rights", async () => {
    first.child.kill("SIGUSR2");
    await first.logged("going on as holder", { address: FLOATING });
    assert.deepEqual(await segment.holders(), [0]);
    await until("its status", async () => {
      return /^role +holder for .*: the program before held it$/m.test(
        await status(segment, 0, paths[0]),
      );
    });
    const rights = await rightsOf(first.pid);
    assert.equal(rights.length, 1, rights.join("\n"));
    for (const set of ALL_SETS) assert.ok(rights[0].includes(set), set);
  });

  await t.step("whatever signals come while it becomes that", async () => {
    const starts = () => first.logs.filter(({ message }) => message === "going on as holder");
    const before = starts().length;
    const from = first.logs.length;
    first.child.kill("SIGUSR2");
    await first.logged("going on as the next program", {}, from);
    for (const signal of ["SIGHUP", "SIGUSR2"] as const) first.child.kill(signal);
    // The second one is heard by the program that the first has made.
    await until("it has gone on twice", () => first.hasEnded || starts().length === before + 2);
    assert.ok(!first.hasEnded, first.transcript());
    assert.deepEqual(await segment.holders(), [0]);
  });

  await t.step("not with a configuration that is not valid", async () => {
    await files.write("0", { ...configs[0], vrrp: { interface: 1 } });
    first.child.kill("SIGUSR2");
    const { error } = await first.logged("not upgraded, this program goes on");
    assert.match(String(error), /: vrrp\.\w+: /);
    assert.deepEqual(await segment.holders(), [0]);
  });

  await t.step("and gives up what the next program is not to have", async () => {
    await files.write("0", { ...configs[0], vrrp: { ...configs[0].vrrp, router_id: 52 } });
    const from = first.logs.length;
    assert.deepEqual(second.logs.filter(({ message }) => message === "taking over"), []);
    first.child.kill("SIGUSR2");
    await first.logged("standing by as backup", { reason: "started" }, from);
    await second.logged("taking over", { reason: "the peer gave it up" });
    await first.end("SIGTERM");
  });

  await t.step("and leaves nothing behind when it is stopped before it is that", async () => {
    await second.logged("holding the address");
    const from = second.logs.length;
    second.child.kill("SIGUSR2");
    await second.logged("going on as the next program", {}, from);
    assert.equal((await second.end("SIGTERM")).code, 0);
    assert.deepEqual(await segment.holders(), []);
  });
});
