// Goal: `svc run` answers as Deckard's and Unbound's scenarios say, on which all resolvers agree.
// Method: a namespace with the scenario's servers at their own addresses and port, and the service under
// libfaketime with the scenario's time and trust anchors, which is years before the program's release.
// SVC_SCENARIOS=all plays all of them, SVC_SCENARIOS=val_nx_nodeny,iter_cname_nx some.
import assert from "node:assert/strict";
import { minimises } from "../replay/played.ts";
import { addressesOf, configValues, parseScenario, scenarioTime } from "../replay/rpl.ts";
import { FakeClock, FAKETIME_LIBRARY, offsetText } from "./fake_clock.ts";
import { OwnDirectory, PERMISSIONS, ROOT, Service, sharedFile } from "./harness.ts";
import { HAS_NAMESPACES, Network } from "./network.ts";

const INDEX = sharedFile("scenarios/index.json");
/** Played each time. */
const SOME = [
  ...["iter_cname_double", "iter_hint_lame", "iter_lame_root", "iter_ns_noglue"],
  ...["val_adbit", "val_cname_to_unsigned", "val_ds_cnamesub", "val_minimal_badrrsiglabels"],
  ...["val_minimal_beforeinception", "val_nodatawc_badce", "val_nsec3_noopt_ref", "val_nx_nodeny"],
];
const CHOSEN = Deno.env.get("SVC_SCENARIOS") ?? SOME.join(",");
/** Addresses that are never asked: this host's. */
const LOOPBACK = /\b127\.0\.0\.\d/;

interface Indexed {
  readonly file: string;
  readonly set: string;
  readonly mode: "recursion" | "forward";
  readonly all_agree: boolean;
}

async function play(path: URL): Promise<string[]> {
  const scenario = parseScenario(await Deno.readTextFile(path));
  await using directory = await OwnDirectory.make();
  const at = directory.path;
  const addresses = addressesOf(scenario).map((ip) => `${ip}/${ip.includes(":") ? 128 : 32}`);
  await using network = await Network.make(addresses, []);
  const timeS = scenarioTime(scenario);
  const offsetS = timeS === null ? 0 : timeS - Math.floor(Date.now() / 1_000);
  const clock = await FakeClock.make(`${at}/clock`, offsetText(offsetS));
  const roots = configValues(scenario, "stub-addr").filter((text) => /^[\d.]+$|:/.test(text));
  const hints = roots.map((ip) =>
    `k.root-servers.net. 3600 ${ip.includes(":") ? "AAAA" : "A"} ${ip}`
  );
  await Deno.writeTextFile(`${at}/hints`, `${hints.join("\n")}\n`);
  const anchors = configValues(scenario, "trust-anchor");
  await Deno.writeTextFile(`${at}/anchors`, `${anchors.join("\n")}\n`);
  const [command, ...before] = network.atServer;
  const script = [`${ROOT}tests/e2e/scenario_child.ts`, path.pathname, `${at}/clock`, `${offsetS}`];
  await using child = new Deno.Command(command, {
    args: [...before, Deno.execPath(), "run", "--no-check", "--allow-all", ...script],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  assert.equal((await lines.read()).value, "ready\n");
  await using service = await Service.start({
    prefix: [...network.atServer, ...clock.prefix],
    config: {
      server: { listen: ["127.0.0.1:0"] },
      recursion: {
        enabled: true,
        root_hints: `${at}/hints`,
        qname_minimisation: minimises(scenario),
        negative_trust_anchors: configValues(scenario, "domain-insecure"),
        ...(anchors.length > 0 ? { trust_anchor: `${at}/anchors` } : { dnssec: false }),
      },
      security: { rebinding_protection: configValues(scenario, "private-address").length > 0 },
      querylog: { enabled: false },
    },
  });
  const stdin = child.stdin.getWriter();
  await stdin.write(new TextEncoder().encode(`${service.address.port}\n`));
  await stdin.close();
  let text = "";
  for (let part = await lines.read(); !part.done; part = await lines.read()) text += part.value;
  return JSON.parse(text);
}

Deno.test("svc run answers as the scenarios say on which all resolvers agree", {
  permissions: PERMISSIONS,
  ignore: INDEX === null || !HAS_NAMESPACES || FAKETIME_LIBRARY === null,
}, async (t) => {
  const { scenarios } = JSON.parse(await Deno.readTextFile(INDEX!));
  for (const { set, file, mode, all_agree } of scenarios as Indexed[]) {
    const isChosen = CHOSEN === "all" || CHOSEN.split(",").includes(file.replace(/\.rpl$/, ""));
    // Of those that are in both sets, Deckard's is played.
    const isAgain = set === "unbound" &&
      (scenarios as Indexed[]).some((other) => other.set !== set && other.file === file);
    if (!isChosen || !all_agree || mode !== "recursion" || isAgain) continue;
    const path = new URL(`${set}/${file}`, INDEX!);
    if (LOOPBACK.test(await Deno.readTextFile(path))) continue;
    await t.step(`${set}/${file}`, async () => assert.deepEqual(await play(path), []));
  }
});
