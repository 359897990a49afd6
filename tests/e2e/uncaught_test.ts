/** Errors that nobody catches, thrown in each part of the main isolate of a running service. */
import assert from "node:assert/strict";
import { Api } from "./api.ts";
import { Asker } from "./asker.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import { OwnDirectory, PERMISSIONS, PROGRAM, Service, until } from "./harness.ts";
import { scrape, valueOf } from "./scrape.ts";

const UNCAUGHT = "an error that nobody caught; DNS goes on";

Deno.test(
  { name: "no error of a part ends DNS", permissions: PERMISSIONS, ignore: PROGRAM !== undefined },
  async (t) => {
    await using directory = await OwnDirectory.make();
    const authority = await makeAuthority();
    await writePair(directory.path, "dns", await authority.issue({ names: ["dns.example"] }));
    await using upstream = await FakeUpstream.start(address);
    await using service = await Service.start({
      directory: directory.path,
      main: "tests/e2e/failing_service.ts",
      config: {
        upstream: [{ address: upstream.text }],
        server: {
          listen: ["127.0.0.1:0"],
          tls: { cert: "dns.crt", key: "dns.key", dot: ["127.0.0.1:0"] },
        },
      },
    });
    const api = await Api.of(service);
    using asker = await Asker.open(service.address);
    let names = 0;
    const answers = async () => {
      const answer = await asker.ask(`n${++names}.example`);
      assert.equal(answer.rcode, "NOERROR");
    };
    await answers();
    assert.deepEqual((await api.call("GET", "status")).problems, []);
    const steps: readonly (readonly [string, () => unknown])[] = [
      ["an API handler", () => api.call("GET", "explain?name=a.example")],
      ["a list download", () => api.call("POST", "lists/refresh")],
      ["the query log", () => api.call("GET", "querylog")],
      ["the export", () => scrape(api.base)],
      ["a certificate", () => service.kill("SIGHUP")],
    ];
    for (const [place, fail] of steps) {
      await t.step(place, async () => {
        await fail();
        for (const how of ["thrown", "rejected"]) {
          await until(
            `${how} in ${place}, logged`,
            () =>
              service.logs.some(({ message, error }) =>
                message === UNCAUGHT && String(error).startsWith(`Error: ${how} in ${place}\n`)
              ),
          );
        }
        await answers();
        const { problems } = await api.call("GET", "status");
        assert.match(problems.join(), /\d errors inside the service.*DNS goes on; last: /);
        assert.equal((await api.call("GET", "health")).status, "degraded");
      });
    }
    const families = await scrape(api.base);
    assert.ok(valueOf(families, "svc_uncaught_errors_total") >= 2 * steps.length);
    assert.equal(valueOf(families, "svc_degraded"), 1);
    assert.equal((await service.stop()).code, 0);
    assert.equal(service.count("stopped"), 1);
  },
);

Deno.test(
  {
    name: "an error that nobody catches ends the process before queries are answered",
    permissions: PERMISSIONS,
    ignore: PROGRAM !== undefined,
  },
  async () => {
    await using service = await Service.launch({ main: "tests/e2e/failing_start.ts" });
    await until("the end of the service", () => service.hasEnded);
    assert.equal((await service.ended).code, 1);
    assert.match(service.transcript(), /thrown at the start/);
    assert.equal(service.count("answering"), 0);
  },
);
