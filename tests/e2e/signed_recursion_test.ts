// Goal: `svc run` with recursion proves what it answers from the root down, and refuses what is
// bogus. Method: a namespace with a signed root, a signed top-level domain and zones that are well,
// spoilt and not signed; dig asks the service, which trusts the root's key.
import assert from "node:assert/strict";
import { signZones, type ZoneSpec } from "../conformance/signed_zones.ts";
import { Api } from "./api.ts";
import { FakeInternet, HAS_INTERNET, type HostZones } from "./fake_internet.ts";
import {
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  svcCommand,
} from "./harness.ts";

const ROOT = "198.41.0.4";
const ZONES: readonly ZoneSpec[] = [
  { name: "good.example.", denial: "nsec3", records: ["www A 203.0.113.1"], children: [] },
  { name: "bad.example.", denial: "nsec", records: ["www A 203.0.113.2"], children: [] },
  { name: "plain.example.", denial: null, records: ["www A 203.0.113.3"], children: [] },
].map((zone) => ({ ...zone, server: "192.0.2.10" }) as ZoneSpec).concat([
  {
    name: "example.",
    denial: "nsec3",
    records: [],
    children: ["good.example.", "bad.example.", "plain.example."],
    server: "192.0.2.1",
  },
  { name: ".", denial: "nsec", records: [], children: ["example."], server: ROOT },
]);

const TOOLS = HAS_INTERNET && ["dnssec-keygen", "dnssec-signzone"].map(hasProgram).every(Boolean);

Deno.test("svc run proves what it resolves from the root down", {
  permissions: PERMISSIONS,
  ignore: !TOOLS,
}, async (t) => {
  await using directory = await OwnDirectory.make();
  const signed = `${directory.path}/signed`;
  await Deno.mkdir(signed);
  await signZones(ZONES, "ED25519", signed);
  const hosts: Record<string, Record<string, readonly string[]>> = {};
  for (const { name, server = "" } of ZONES) {
    const text = await Deno.readTextFile(`${signed}/${name}signed`);
    // What is signed is another address than what is served.
    const served = name === "bad.example." ? text.replace("203.0.113.2", "203.0.113.66") : text;
    (hosts[server] ??= {})[name] = served.split("\n");
  }
  await using internet = await FakeInternet.start(
    directory.path,
    hosts as Readonly<Record<string, HostZones>>,
  );
  const hints = `${directory.path}/root.hints`;
  await Deno.writeTextFile(hints, `. 3600 NS ns.\nns. 3600 A ${ROOT}\n`);
  await using service = await Service.start({
    prefix: internet.prefix,
    config: {
      recursion: { enabled: true, root_hints: hints, trust_anchor: `${signed}/dsset-.` },
    },
  });
  const { port } = service.address;
  const ask = (...args: string[]) =>
    internet.dig("@127.0.0.1", "-p", `${port}`, "+time=6", "+dnssec", ...args);
  const CASES: readonly (readonly [string, string, RegExp])[] = [
    ["what is signed", "www.good.example", /NOERROR[^]*flags: qr rd ra ad;[^]*RRSIG\s+A 15 /],
    ["what is not there", "gone.good.example", /NXDOMAIN[^]*flags: qr rd ra ad;[^]*NSEC3/],
    ["a top-level domain that is not there", "www.nowhere", /NXDOMAIN[^]*qr rd ra ad;[^]*NSEC/],
    ["what is not signed", "www.plain.example", /NOERROR[^]*flags: qr rd ra;[^]*203\.0\.113\.3/],
    [
      "what is bogus",
      "www.bad.example",
      /SERVFAIL[^]*EDE: 6 \(DNSSEC Bogus\): \(www\.bad\.example A: the signature of key \d+ does not/,
    ],
  ];
  for (const [what, name, want] of CASES) {
    for (const again of ["", ", once more"]) {
      await t.step(`${what}${again}`, async () => assert.match(await ask(name), want));
    }
  }
  await t.step("CD hands out what was found", async () => {
    assert.match(await ask("+cd", "www.bad.example"), /NOERROR[^]*203\.0\.113\.66/);
  });
  await t.step("svc explain --trace shows signatures", async () => {
    const api = (await Api.of(service)).base.replace("/api/v1", "");
    const [command, ...args] = [
      ...internet.prefix,
      ...svcCommand(["explain", "www.bad.example", "--trace", "--api", api]),
    ];
    const { code, stdout, stderr } = await runProgram(command, ...args);
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /dnssec: bogus: www\.bad\.example A: the signature of key \d+ does not fit/,
    );
    assert.match(stdout, /validated: .*of key \d+ of bad\.example does not fit/);
  });
});
