// Goal: a client that knows an address of the resolver finds its encrypted listeners by asking (RFC 9462).
// Method: dig asks as a device does, and kdig then goes where it was sent, with the certificate checked.
import assert from "node:assert/strict";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { freePort, hasProgram, OwnDirectory, PERMISSIONS, runProgram, Service } from "./harness.ts";

const DOMAIN = "dns.home.example";

Deno.test({
  name: "clients are told of the encrypted listeners",
  permissions: PERMISSIONS,
  ignore: !hasProgram("kdig"),
  fn: async (t) => {
    await using own = await OwnDirectory.make();
    const directory = own.path;
    const authority = await makeAuthority();
    await Deno.writeTextFile(`${directory}/ca.crt`, authority.cert);
    const names = { names: [DOMAIN], ips: ["127.0.0.1"] };
    await writePair(directory, "server", await authority.issue(names));
    const port = freePort();
    await using service = await Service.start({
      directory,
      config: {
        "server.tls": {
          ...{ cert: "server.crt", key: "server.key", server_name: DOMAIN },
          dot: [`127.0.0.1:${port}`],
        },
      },
    });
    const api = await Api.of(service);
    const dig = async (name: string) => {
      const at = ["@127.0.0.1", "-p", `${service.address.port}`, "+short"];
      return (await runProgram("dig", ...at, name, "SVCB")).stdout.trim();
    };
    const told = `2 ${DOMAIN}. alpn="dot" port=${port}`;
    await t.step("at the names that they ask for", async () => {
      assert.equal(await dig("_dns.resolver.arpa"), told);
      assert.equal(await dig(`_dns.${DOMAIN}`), told);
      assert.equal(await dig("resolver.arpa"), "");
    });
    await t.step("and get there", async () => {
      const tls = ["+tls-ca=" + `${directory}/ca.crt`, `+tls-host=${DOMAIN}`];
      const at = ["@127.0.0.1", "-p", `${port}`, "+short"];
      const { code, stdout } = await runProgram("kdig", ...at, ...tls, "health.svc.test", "A");
      assert.deepEqual([code, stdout.trim()], [0, "127.0.0.1"]);
    });
    await t.step("unless a record says otherwise", async () => {
      await api.create("records", {
        name: "_dns.resolver.arpa",
        type: "SVCB",
        value: "1 other.example alpn=dot",
      });
      assert.equal(await dig("_dns.resolver.arpa"), '1 other.example. alpn="dot"');
      assert.equal(await dig(`_dns.${DOMAIN}`), told);
    });
  },
});
