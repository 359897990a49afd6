// Goal: who validates behind svc accepts what svc calls secure, and refuses what it refuses. Method:
// BIND's delv, drill's chase of signatures, unbound and Knot Resolver ask a service that forwards to
// signed zones and validates; each trusts the same key. Knot Resolver is left out where there is none.
import assert from "node:assert/strict";
import { parseName, Qtype } from "../../src/dns/mod.ts";
import { askTcp } from "../e2e/clients.ts";
import { freePort, hasProgram, PERMISSIONS, runProgram, Service, until } from "../e2e/harness.ts";
import { anchorsOfBind, askDelv } from "./delv.ts";
import { SignedZones, signZones, type ZoneSpec } from "./signed_zones.ts";
import { startUnbound } from "./validating_unbound.ts";

const TOOLS = ["dnssec-keygen", "dnssec-signzone", "nsd", "delv", "drill", "unbound"]
  .map(hasProgram).every(Boolean);
const OPTIONS = { permissions: PERMISSIONS, ignore: !TOOLS } as const;

const ZONES: readonly ZoneSpec[] = [
  { name: "bad.test.", denial: "nsec", records: ["www A 192.0.2.66"], children: [] },
  { name: "plain.test.", denial: null, records: ["www A 192.0.2.2"], children: [] },
  { name: "hash.test.", denial: "nsec3", records: ["www A 192.0.2.3"], children: [] },
  {
    name: "test.",
    denial: "nsec",
    records: ["www A 192.0.2.1", "*.wild A 192.0.2.9", "alias CNAME www.hash"],
    children: ["bad.test.", "plain.test.", "hash.test."],
  },
];
/** What is to come of each; `null` where a program has no word for it. */
const CASES = [
  ["www.test", "A", "secure"],
  ["www.hash.test", "A", "secure"],
  ["any.wild.test", "A", "secure"],
  ["alias.test", "A", "secure"],
  ["gone.test", "A", "secure"],
  ["gone.hash.test", "A", "secure"],
  ["www.hash.test", "TXT", "secure"],
  ["www.plain.test", "A", "insecure"],
  ["www.bad.test", "A", "bogus"],
] as const;

/** Knot Resolver as a validator that forwards to svc; `null` where it is not installed. */
async function startKnot(directory: string, upstream: number, anchors: string) {
  if (!hasProgram("kresd")) return null;
  const port = freePort();
  const config = `net.listen("127.0.0.1", ${port}, { kind = "dns" })
modules.unload("ta_update")
trust_anchors.remove(".")
trust_anchors.add_file("${anchors}", true)
policy.add(policy.all(policy.FORWARD("127.0.0.1@${upstream}")))
cache.open(10 * MB, "lmdb://${directory}/knot")
`;
  await Deno.writeTextFile(`${directory}/knot.conf`, config);
  await Deno.mkdir(`${directory}/knot`);
  const child = new Deno.Command("kresd", {
    args: ["-n", "-c", `${directory}/knot.conf`, directory],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  await until("kresd, listening", async () => {
    try {
      (await Deno.connect({ hostname: "127.0.0.1", port })).close();
      return true;
    } catch {
      return false;
    }
  });
  return {
    server: { ip: Uint8Array.of(127, 0, 0, 1), port },
    async [Symbol.asyncDispose](): Promise<void> {
      child.kill("SIGKILL");
      await child.status;
    },
  };
}

/** The file of the key that the anchor is of. */
async function keyFile(directory: string): Promise<string> {
  for await (const { name } of Deno.readDir(directory)) {
    if (!/^Ktest\..*\.key$/.test(name)) continue;
    if (/ DNSKEY 257 /.test(await Deno.readTextFile(`${directory}/${name}`))) {
      return `${directory}/${name}`;
    }
  }
  throw new Error(`${directory} holds no key-signing key of test`);
}

Deno.test("validators behind svc agree with it", OPTIONS, async (t) => {
  const directory = await signZones(ZONES, "ECDSAP256SHA256");
  const bad = `${directory}/bad.test.signed`;
  await Deno.writeTextFile(bad, (await Deno.readTextFile(bad)).replace("2.66", "2.67"));
  const anchors = `${directory}/dsset-test.`;
  const bindAnchors = `${directory}/anchors`;
  await Deno.writeTextFile(bindAnchors, anchorsOfBind(await Deno.readTextFile(anchors)));
  await using zones = await SignedZones.serve(directory, ZONES.map(({ name }) => name));
  await using service = await Service.start({
    config: {
      upstream: [{ address: `127.0.0.1:${zones.port}` }],
      recursion: { validate_forwarded: true, trust_anchor: anchors },
    },
  });
  const { port } = service.address;
  await t.step("delv", async () => {
    for (const [name, type, want] of CASES) {
      // It says nothing of an absence at an alias's end.
      const got = await askDelv(port, bindAnchors, { name: parseName(name)!, type: Qtype[type] });
      assert.equal(got, want, `${name} ${type}`);
    }
  });
  await t.step("drill -S", async () => {
    for (const name of ["www.test", "www.hash.test", "www.bad.test"]) {
      const { stdout } = await runProgram(
        "drill",
        ...["-S", "-k", await keyFile(directory), "@127.0.0.1", "-p", `${port}`, name],
      );
      assert.equal(/Chase successful/.test(stdout), name !== "www.bad.test", `${name}: ${stdout}`);
    }
  });
  await using unbound = await startUnbound(directory, port, anchors);
  await using knot = await startKnot(directory, port, anchors);
  for (const [program, validator] of [["unbound", unbound], ["kresd", knot]] as const) {
    if (validator === null) continue;
    await t.step(program, async () => {
      for (const [name, type, want] of CASES) {
        const { rcode, ad } = await askTcp(validator.server, name, Qtype[type], {
          edns: { dnssecOk: true },
        });
        const got = rcode === 2 ? "bogus" : ad ? "secure" : "insecure";
        assert.equal(got, want, `${name} ${type}`);
      }
    });
  }
});
