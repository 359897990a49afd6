// Goal: `svc unblock` lets a name through for a while, for those it is asked for. Method: the command
// against a running service, dig before and after, and what the API then holds.
import assert from "node:assert/strict";
import { Api, DEFAULT_GROUP } from "./api.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import { OwnDirectory, PERMISSIONS, runProgram, Service, svcCommand, until } from "./harness.ts";
import { filterWithServices } from "./services.ts";

const HOUR_MS = 3_600_000;

Deno.test(
  "svc unblock lets a name through for a while",
  { permissions: PERMISSIONS },
  async (t) => {
    await using own = await OwnDirectory.make();
    await using upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
    await using service = await Service.start({
      directory: own.path,
      config: {
        upstream: [{ address: upstream.text }],
        filter: {
          ...await filterWithServices(own.path),
          rules: [
            "||ads.example^",
            "||vital.example^$important",
            "||moved.example^$dnsrewrite=192.0.2.9",
            "||later.example^",
            "||tv.example^",
            "||müller.example^",
          ],
        },
      },
    });
    const api = await Api.of(service);
    const unblock = async (...args: string[]) => {
      const [command, ...rest] = svcCommand([
        "unblock",
        ...args,
        "--api",
        new URL(api.base).origin,
      ]);
      return await runProgram(command, ...rest);
    };
    const dig = async (name: string, from = "127.0.0.1") => {
      const port = `${service.address.port}`;
      const { stdout } = await runProgram(
        "dig",
        "@127.0.0.1",
        "-b",
        from,
        "-p",
        port,
        name,
        "+short",
      );
      return stdout.trim();
    };
    const newest = async () => (await api.call("GET", "rules")).items.at(-1).spec;

    await t.step("for an hour, and for everybody, where nothing else is said", async () => {
      assert.equal(await dig("www.ads.example"), "0.0.0.0");
      const before = Date.now();
      const { code, stdout, stderr } = await unblock("ADS.example.");
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(stdout, /^ads\.example and all below: allowed for everybody until 20.*\^\)\n$/);
      assert.equal(await dig("www.ads.example"), "192.0.2.7");
      const { rule, expires_at, clients, groups } = await newest();
      assert.deepEqual([rule, clients, groups], ["@@||ads.example^", [], []]);
      const end = Date.parse(expires_at);
      assert.ok(end >= before + HOUR_MS && end <= Date.now() + HOUR_MS, expires_at);
    });

    await t.step("what a local record leads to", async () => {
      await api.create("rules", { rule: "||far.example^" });
      const record = { name: "near.example", type: "CNAME", value: "www.far.example" };
      await api.create("records", record);
      assert.match(await dig("near.example"), /0\.0\.0\.0$/);
      const { code, stdout } = await unblock("near.example");
      assert.match(stdout, /^www\.far\.example and all below: allowed for everybody/);
      assert.equal(code, 0);
      assert.match(await dig("near.example"), /192\.0\.2\.7$/);
    });

    await t.step("whatever stands against it, and as long as was asked for", async () => {
      for (const name of ["vital.example", "moved.example"]) {
        assert.equal((await unblock(name, "--for", "7d")).code, 0);
        assert.equal(await dig(name), "192.0.2.7");
        const days = (Date.parse((await newest()).expires_at) - Date.now()) / (24 * HOUR_MS);
        assert.equal(Math.round(days), 7);
      }
    });

    await t.step("and no longer", async () => {
      assert.equal((await unblock("later.example", "--for", "5s")).code, 0);
      await until("later.example, blocked", async () => await dig("later.example") === "0.0.0.0");
    });

    await t.step("a name in another script", async () => {
      const { code, stdout, stderr } = await unblock("Müller.example");
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(stdout, /^xn--mller-kva\.example and all below: allowed/);
      assert.equal(await dig("www.xn--mller-kva.example"), "192.0.2.7");
    });

    await t.step("for one client", async () => {
      await api.create("clients", { name: "TV", addresses: ["127.0.0.8"] });
      const { code, stdout } = await unblock("tv.example", "--client", "127.0.0.8");
      assert.equal(code, 0);
      assert.match(stdout, /allowed for TV until/);
      assert.equal(await dig("tv.example", "127.0.0.8"), "192.0.2.7");
      assert.equal(await dig("tv.example"), "0.0.0.0");
    });

    await t.step("a service, by its pause in the group", async () => {
      const path = `groups/${DEFAULT_GROUP}`;
      const { spec } = await api.call("GET", path);
      const put = await api.call("PUT", path, {
        ...spec,
        blocked_services: [{ service: "tiktok" }],
      });
      assert.equal(put.status, undefined, JSON.stringify(put));
      assert.equal(await dig("tiktok.example"), "0.0.0.0");
      const { code, stdout, stderr } = await unblock("tiktok.example");
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(stdout, /^tiktok: allowed for group Default until 20/);
      assert.equal(await dig("tiktok.example"), "192.0.2.7");
    });

    await t.step("says what it can't do, and does nothing", async () => {
      await api.create("records", { name: "nas.example", type: "A", value: "192.0.2.3" });
      const { rule: made } = await newest();
      const refused: readonly (readonly [number, RegExp, readonly string[]])[] = [
        [1, /nas\.example: no exception lifts a local record/, ["nas.example"]],
        [1, /no client has 127\.0\.0\.9: add one/, ["tv.example", "--client", "127.0.0.9"]],
        [1, /name: /, ["no name"]],
        [2, /--for: soon is no period from 1s to 366d/, ["ads.example", "--for", "soon"]],
        [2, /it takes one NAME/, []],
      ];
      for (const [exit, message, args] of refused) {
        const { code, stdout, stderr } = await unblock(...args);
        assert.equal(code, exit, stderr);
        assert.match(stderr, message);
        assert.deepEqual([stdout, stderr.split("\n").length], ["", 2], stderr);
      }
      assert.equal((await newest()).rule, made); // Those that have ended may be gone.
    });
  },
);
