// Goal: a machine whose clock is wrong loses nothing by it, and all is well once it is set. Method: the
// running service under libfaketime, whose clock is set while it runs, between a client and the API.
import assert from "node:assert/strict";
import { Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { ask } from "./clients.ts";
import { FakeClock, FAKETIME_LIBRARY } from "./fake_clock.ts";
import { FakeUpstream } from "./fake_upstream.ts";
import { OwnDirectory, PERMISSIONS, Service, until } from "./harness.ts";

const DAY_MS = 86_400_000;

/** A service whose wall clock is off by as much as the test says. */
class Clocked {
  private constructor(
    readonly service: Service,
    readonly api: Api,
    readonly upstream: FakeUpstream,
    readonly clock: FakeClock,
  ) {}

  static async start(directory: string, offset: string): Promise<Clocked> {
    const clock = await FakeClock.make(`${directory}/faketime`, offset);
    const upstream = await FakeUpstream.start();
    const service = await Service.start({
      directory,
      config: { upstream: [{ address: upstream.text }] },
      prefix: clock.prefix,
    });
    return new Clocked(service, await Api.of(service), upstream, clock);
  }

  async ask(name: string): Promise<void> {
    assert.equal((await ask(this.service.address, `${name}.example`, Qtype.A)).answers.length, 1);
  }

  /** Names and times of the log, oldest first. */
  async entries(query = ""): Promise<[string, number][]> {
    const { entries } = await this.api.call("GET", `querylog?${query}`);
    return (entries as { name: string; time: string }[]).toReversed()
      .map(({ name, time }) => [name.split(".")[0], Date.parse(time)]);
  }

  async names(): Promise<string> {
    return (await this.entries()).map(([name]) => name).join(" ");
  }

  async problems(): Promise<string> {
    return ((await this.api.call("GET", "status")).problems as string[]).join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.stop();
    await this.service[Symbol.asyncDispose]();
    await this.upstream.close();
  }
}

Deno.test({
  name: "svc run keeps its log, sessions and order by a clock that is behind, and after",
  permissions: PERMISSIONS,
  ignore: FAKETIME_LIBRARY === null,
  fn: async () => {
    await using own = await OwnDirectory.make();
    {
      await using first = await Clocked.start(own.path, "-2h"); // Off for two hours then.
      await first.ask("a");
      assert.equal(await first.names(), "a");
      // The clock itself is preloaded.
      assert.match(await first.problems(), /^sandbox: LD_PRELOAD is set, so paths stay open: .*$/);
    }
    await using late = await Clocked.start(own.path, "-10d");
    await until("it is told", async () => /is not believed/.test(await late.problems()));
    const beforeMs = Date.now();
    await late.ask("b");
    const [a, b] = await late.entries();
    assert.deepEqual([a[0], b[0]], ["a", "b"]);
    assert.ok(b[1] >= a[1] && b[1] < beforeMs, "time goes on from the newest entry");
    assert.deepEqual(await late.entries(`since=${new Date(a[1]).toISOString()}`), [b]);
    // A pause lasts as long as it was asked for.
    await late.api.create("rules", { rule: "||ads.example^" });
    const outcome = async () => (await late.api.call("GET", "explain?name=ads.example")).outcome;
    assert.equal(await outcome(), "blocked");
    await late.api.call("PUT", "pause", { seconds: 1 });
    await until("the pause is over", async () => await outcome() === "blocked");
    assert.equal((await late.api.call("GET", "status")).paused_until, null);
    // An account that is made, and used, meanwhile.
    const password = "a long enough password";
    await late.api.create("users", { name: "ann", role: "admin", password });
    const signIn = await fetch(`${late.api.base}/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "ann", password }),
    });
    assert.equal(signIn.status, 200, await signIn.text());
    const cookie = String(signIn.headers.get("set-cookie")).split(";")[0];
    const statusAs = async () => {
      const response = await fetch(`${late.api.base}/status`, { headers: { cookie } });
      return [response.status, await response.text()] as const;
    };
    assert.match((await statusAs())[1], /is not believed/);
    await late.clock.set("+0d");
    await until("it is believed", async () => !/is not believed/.test((await statusAs())[1]));
    const response = await fetch(`${late.api.base}/querylog`, { headers: { cookie } });
    const { entries } = await response.json();
    const times = (entries as { name: string; time: string }[]).map(({ name, time }) => [
      name,
      Date.parse(time) >= beforeMs,
    ]);
    assert.deepEqual(times, [["b.example", true], ["a.example", false]], "b has its right time");
    assert.equal((await statusAs())[0], 200, "the session goes on");
    const { started_at } = JSON.parse((await statusAs())[1]);
    assert.ok(Math.abs(Date.now() - Date.parse(started_at)) < DAY_MS, started_at);
    const scraped = await fetch(new URL("/metrics", late.api.base), { headers: { cookie } });
    const [, uptime] = /^svc_uptime_seconds (\S+)$/m.exec(await scraped.text()) ?? [];
    assert.ok(Number(uptime) < DAY_MS / 1_000, `up for ${uptime} s`);
  },
});

Deno.test({
  name: "svc run keeps its log through a clock that is far ahead for a while",
  permissions: PERMISSIONS,
  ignore: FAKETIME_LIBRARY === null,
  fn: async () => {
    await using own = await OwnDirectory.make();
    await using clocked = await Clocked.start(own.path, "+0d");
    await clocked.ask("a");
    assert.equal(await clocked.names(), "a");
    await clocked.clock.set("+20000d");
    await until("the jump is told", async () => /jumped ahead/.test(await clocked.problems()));
    await clocked.ask("b");
    assert.equal(await clocked.names(), "a b", "and a is too old by far");
    await clocked.clock.set("+0d");
    await until("it is told", async () => /jumped back/.test(await clocked.problems()));
    await clocked.ask("c");
    assert.equal(await clocked.names(), "a b c");
    const entries = await clocked.entries();
    assert.ok(entries.every(([, ms]) => ms < Date.now() + DAY_MS), JSON.stringify(entries));
    assert.equal((await clocked.api.call("GET", "stats?hours=24")).total, 3);
    assert.doesNotMatch(await clocked.problems(), /nothing is removed/);
  },
});
