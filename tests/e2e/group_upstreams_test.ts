// Goal: queries of a group go to the upstreams that it names, and no answer of these is ever anybody
// else's. Method: upstreams that answer with addresses of their own, asked with dig from addresses of
// loopback that are clients of different groups.

import assert from "node:assert/strict";
import { Api, DEFAULT_GROUP } from "./api.ts";
import { lookUp, nextId } from "./clients.ts";
import { address, answer, FakeUpstream } from "./fake_upstream.ts";
import { hasProgram, PERMISSIONS, runProgram, Service, svcCommand, until } from "./harness.ts";

const HAS_DIG = hasProgram("dig");
const [KIDS, OFFICE, GUEST] = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
const EVERYBODY = "192.0.2.1";
const FAMILY = "192.0.2.2";
const WORK = "192.0.2.3";
const ROUTER = "192.168.1.1";

const freshName = () => `n${nextId()}.example`;

Deno.test({
  name: "svc run asks the upstreams of a group, and keeps their answers apart",
  permissions: PERMISSIONS,
  ignore: !HAS_DIG,
  fn: async (t) => {
    await using everybody = await FakeUpstream.start((query) => address(query, EVERYBODY));
    await using family = await FakeUpstream.start((query) =>
      /^blocked/i.test(query.name) ? answer(query, { rcode: 3 }) : address(query, FAMILY)
    );
    await using work = await FakeUpstream.start((query) => address(query, WORK));
    await using router = await FakeUpstream.start((query) => address(query, ROUTER));
    const timeout = "10s";
    await using service = await Service.start({
      config: {
        upstream: [
          { address: everybody.text, timeout },
          { address: family.text, timeout, name: "family", groups_only: true },
          { address: work.text, timeout, groups_only: true },
          { address: router.text, timeout, domains: ["lan"] },
        ],
        server: { listen: ["127.0.0.1:0"], workers: 2 },
        cache: { prefetch: true },
      },
    });
    const api = await Api.of(service);
    const ask = async (name: string, from: string) =>
      (await lookUp("dig", service.address, `${name} A +short -b ${from}`)).trim();
    const group = (name: string, upstreams: readonly string[]) => ({ name, upstreams });
    const kids = await api.create("groups", group("Kids", ["family"]));
    const office = await api.create("groups", group("Office", [work.text]));
    for (const [name, ip, of] of [["Kid", KIDS, kids], ["Desk", OFFICE, office]]) {
      await api.create("clients", { name, addresses: [ip], group: of });
    }

    await t.step("the same name, asked in every order", async () => {
      const want = [[KIDS, FAMILY], [OFFICE, WORK], [GUEST, EVERYBODY]];
      for (let first = 0; first < want.length; first++) {
        const name = freshName();
        for (const round of ["asked", "kept", "kept"]) {
          for (let i = 0; i < want.length; i++) {
            const [from, told] = want[(first + i) % want.length];
            assert.equal(await ask(name, from), told, `${from}: ${round}`);
          }
        }
      }
      assert.equal(family.seen.length + work.seen.length >= 6, true);
    });
    await t.step("at once", async () => {
      const name = freshName();
      const told = await Promise.all([KIDS, OFFICE, GUEST].map((from) => ask(name, from)));
      assert.deepEqual(told, [FAMILY, WORK, EVERYBODY]);
    });
    await t.step("a denial of one is nobody else's", async () => {
      const name = `blocked-${freshName()}`;
      assert.equal(await ask(name, KIDS), "");
      assert.equal(await ask(name, GUEST), EVERYBODY);
      assert.equal(await ask(name, KIDS), "");
    });
    await t.step("names of one's own network are asked where they are", async () => {
      assert.equal(await ask("nas.lan", KIDS), ROUTER);
      assert.equal(await ask("nas.lan", GUEST), ROUTER);
    });
    await t.step("who is asked is explained, and a trace asks them", async () => {
      const explain = async (client: string) => {
        const name = freshName();
        const { outcome, upstreams, trace } = await api.call(
          "GET",
          `explain?name=${name}&client=${client}&trace=true`,
        );
        return [outcome, upstreams, trace.records.map((one: string) => one.split(" ").at(-1))];
      };
      const [one, two, three] = [everybody.text, family.text, work.text];
      assert.deepEqual(await explain(GUEST), [
        "forwarded",
        [{ address: one, name: null }],
        [EVERYBODY],
      ]);
      assert.deepEqual(await explain(KIDS), [
        "forwarded",
        [{ address: two, name: "family" }],
        [FAMILY],
      ]);
      assert.deepEqual(await explain(OFFICE), [
        "forwarded",
        [{ address: three, name: null }],
        [WORK],
      ]);
      const base = api.base.replace("/api/v1", "");
      const [command, ...args] = svcCommand([
        "explain",
        freshName(),
        "--client",
        "Kid",
        "--api",
        base,
      ]);
      const { code, stdout, stderr } = await runProgram(command, ...args);
      assert.equal(code, 0, stderr);
      assert.match(stdout, new RegExp(`^upstreams: family \\(${two}\\)$`, "m"));
    });
    await t.step("another list holds at once", async () => {
      const name = freshName();
      assert.equal(await ask(name, KIDS), FAMILY);
      await api.call("PUT", `groups/${kids}`, group("Children", [work.text]));
      assert.equal(await ask(name, KIDS), WORK, "not what the former upstream said");
      await api.call("PUT", `groups/${kids}`, group("Children", ["family"]));
      assert.equal(await ask(name, KIDS), FAMILY);
      await api.call("PUT", `groups/${kids}`, group("Children", []));
      assert.equal(await ask(name, KIDS), EVERYBODY);
      await api.call("PUT", `groups/${kids}`, group("Children", ["family"]));
    });
    await t.step(
      "an upstream that this node lacks is a problem, and its queries fail",
      async () => {
        const name = freshName();
        await api.call("PUT", `groups/${office}`, group("Office", ["elsewhere"]));
        const shown = await lookUp("dig", service.address, `${name} A -b ${OFFICE}`);
        assert.match(shown, /status: SERVFAIL/);
        assert.match(shown, /none of the upstreams that the group names/);
        const problem = "groups: Office: this node has no upstream elsewhere";
        await until("the problem", async () => {
          const { problems } = await api.call("GET", "status");
          return problems.some((text: string) => text.startsWith(problem));
        });
        assert.equal(await ask(name, GUEST), EVERYBODY);
        // One that is there is enough.
        await api.call("PUT", `groups/${office}`, group("Office", ["elsewhere", "family"]));
        assert.equal(await ask(name, OFFICE), FAMILY);
      },
    );
    await t.step("without the group its clients are like others", async () => {
      const name = freshName();
      assert.equal(await ask(name, KIDS), FAMILY);
      const { items } = await api.call("GET", "clients");
      const { id, spec } = items.find((one: { spec: { name: string } }) => one.spec.name === "Kid");
      await api.call("PUT", `clients/${id}`, { ...spec, group: DEFAULT_GROUP });
      assert.equal(await api.call("DELETE", `groups/${kids}`), null);
      assert.equal(await ask(name, KIDS), EVERYBODY);
    });
    await t.step("the status names them", async () => {
      const { upstreams } = await api.call("GET", "status");
      assert.deepEqual(
        upstreams.map((one: { name: string; groups_only: boolean }) => [one.name, one.groups_only]),
        [[null, false], ["family", true], [null, true], [null, false]],
      );
    });
    service.assertCalm();
  },
});
