// Goal: who is asked, with what, and for whom is as the configuration says. Method: scripted upstreams
// behind services of their own, asked with dig.

import assert from "node:assert/strict";
import { Rcode } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { lookUp, nextId } from "./clients.ts";
import { address, answer, FakeUpstream } from "./fake_upstream.ts";
import {
  hasProgram,
  pause,
  PERMISSIONS,
  runProgram,
  Service,
  sideBySide,
  svcCommand,
  until,
} from "./harness.ts";
import { scrape, valueOf } from "./scrape.ts";

const HAS_DIG = hasProgram("dig");
/** Longer than anything here takes, and shorter than the timeout of an upstream. */
const LATE_MS = 8_000;

const freshName = () => `n${nextId()}.example`;

async function asksInOrder(): Promise<void> {
  await using first = await FakeUpstream.start((query) => address(query, "192.0.2.1"));
  await using second = await FakeUpstream.start((query) => address(query, "192.0.2.2"));
  await using service = await Service.start({
    config: { upstream: [first, second].map(({ text }) => ({ address: text, timeout: "10s" })) },
  });
  for (let i = 0; i < 5; i++) {
    const shown = await lookUp("dig", service.address, `${freshName()} A +short`);
    assert.match(shown, /^192\.0\.2\.[12]\n$/);
  }
  assert.ok(first.seen.length >= 5);
  const { forwarding } = await (await Api.of(service)).call("GET", "status");
  assert.deepEqual(forwarding, { strategy: "order" });
  service.assertCalm();
}

async function asksTheFastest(): Promise<void> {
  await using slow = await FakeUpstream.start(async (query) => {
    await pause(100);
    return address(query, "192.0.2.1");
  });
  await using quick = await FakeUpstream.start((query) => address(query, "192.0.2.2"));
  await using service = await Service.start({
    config: {
      upstream: [slow, quick].map(({ text }) => ({ address: text, timeout: "10s" })),
      forwarding: { strategy: "fastest" },
    },
  });
  let asked = 0;
  // A machine that stalls may make either the slower one for a while.
  await until("nearly all asked of the quick one", async () => {
    const before = slow.seen.length;
    for (let i = 0; i < 20; i++, asked++) {
      await lookUp("dig", service.address, `${freshName()} A +short`);
    }
    return slow.seen.length - before <= 5;
  });
  assert.ok(quick.seen.length > 0);
  const api = await Api.of(service);
  assert.deepEqual((await api.call("GET", "status")).forwarding, { strategy: "fastest" });
  service.assertCalm();
}

async function asksSeveral(): Promise<void> {
  await using broken = await FakeUpstream.start((query) =>
    answer(query, { rcode: query.type === 1 ? Rcode.ServFail : Rcode.Refused })
  );
  await using late = await FakeUpstream.start(async (query) => {
    await pause(LATE_MS);
    return address(query, "192.0.2.2");
  });
  await using good = await FakeUpstream.start((query) =>
    /^missing/i.test(query.name)
      ? answer(query, { rcode: Rcode.NXDomain })
      : address(query, "192.0.2.3")
  );
  await using spare = await FakeUpstream.start((query) => address(query, "192.0.2.4"));
  await using service = await Service.start({
    config: {
      upstream: [broken, late, good, spare].map(({ text }) => ({ address: text, timeout: "10s" })),
      forwarding: { strategy: "parallel", parallel_max: 3 },
    },
  });
  const name = freshName();
  // Who did not help has another in its place, which may well be sooner.
  assert.match(
    await lookUp("dig", service.address, `${name} A +short`),
    /^192\.0\.2\.[34]\n$/,
  );
  for (const upstream of [broken, late, good]) assert.equal(upstream.about(name).length, 1);
  const missing = `missing-${name}`;
  spare.script = () => null;
  assert.match(await lookUp("dig", service.address, `${missing} A`), /status: NXDOMAIN/);
  const all = [broken, late, good, spare];
  const sent = all.reduce((sum, upstream) => sum + upstream.about(missing).length, 0);
  assert.ok(sent <= 6, `${sent} queries for one question`);
  const api = await Api.of(service);
  await until("the count of those called off", async () => {
    const families = await scrape(api.base);
    const labels = { upstream: late.text };
    return valueOf(families, "svc_upstream_called_off_total", labels) >= 2;
  });
  service.assertCalm();
}

Deno.test({
  name: "svc run chooses among upstreams by the strategy",
  permissions: PERMISSIONS,
  ignore: !HAS_DIG,
  fn: (t) =>
    sideBySide(t, [
      ["order", asksInOrder],
      ["fastest", asksTheFastest],
      ["parallel", asksSeveral],
    ]),
});

Deno.test("svc check-config says what is wrong with upstreams", {
  permissions: PERMISSIONS,
}, async () => {
  const file = await Deno.makeTempFile({ suffix: ".toml" });
  await Deno.writeTextFile(file, '[forwarding]\nstrategy = "fast"\nparallel_max = 9\n');
  const [command, ...args] = svcCommand(["check-config", "--config", file]);
  const { code, stdout, stderr } = await runProgram(command, ...args);
  await Deno.remove(file);
  assert.equal(code, 2);
  assert.match(stdout + stderr, /:2: forwarding\.strategy: .*"order" or "fastest" or "parallel"/);
  assert.match(stdout + stderr, /:3: forwarding\.parallel_max: is 9, .*from 2 to 5/);
});
