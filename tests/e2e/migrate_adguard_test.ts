// Goal: the AdGuard Home that people have is read as the one that was recorded. Method: one that runs
// here, filled through its own API, moved by the command, and by it again.
import assert from "node:assert/strict";
import { PASSWORD, USER } from "../../src/migrate/fakes.ts";
import { AdguardHome, findAdguardHome } from "./adguard_home.ts";
import { Api } from "./api.ts";
import { OwnDirectory, PERMISSIONS, runProgram, Service, svcCommand } from "./harness.ts";

const program = await findAdguardHome();

Deno.test("svc migrate moves what an AdGuard Home of today has", {
  ignore: program === null,
  permissions: PERMISSIONS,
}, async () => {
  await using directory = await OwnDirectory.make();
  await Deno.writeTextFile(`${directory.path}/password`, `${PASSWORD}\n`);
  const list = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response("||listed.example^\n"),
  );
  await using home = await AdguardHome.start(program!, USER, PASSWORD);
  await using service = await Service.start();
  const api = await Api.of(service);
  try {
    const hour = 3_600_000;
    const night = { time_zone: "Europe/Berlin", mon: { start: 18 * hour, end: 20 * hour } };
    const url = `http://127.0.0.1:${list.addr.port}/ads.txt`;
    await home.call("filtering/add_url", { name: "Ads", url, whitelist: false });
    await home.call("filtering/set_rules", { rules: ["! mine", "||ads.example^", "/ad[0-9]/"] });
    await home.call("filtering/config", { enabled: true, interval: 12 });
    await home.call("rewrite/add", { domain: "nas.home.arpa", answer: "192.168.1.5" });
    await home.call("rewrite/add", { domain: "*.dev.example", answer: "nas.home.arpa" });
    await home.call("blocked_services/update", { ids: ["tiktok"], schedule: night }, "PUT");
    await home.call("access/set", {
      allowed_clients: [],
      disallowed_clients: ["192.168.1.66"],
      blocked_hosts: ["version.bind"],
    });
    await home.call("dns_config", {
      upstream_dns: ["https://dns10.quad9.net/dns-query", "[/lan/]192.168.1.1"],
      bootstrap_dns: ["9.9.9.10"],
      blocking_mode: "nxdomain",
      blocked_response_ttl: 60,
      cache_optimistic: true,
    });
    await home.call("clients/add", {
      name: "Tablet",
      ids: ["192.168.1.21", "tablet"],
      use_global_settings: false,
      use_global_blocked_services: true,
      filtering_enabled: true,
      safe_search: { enabled: true, google: true },
    });
    const svc = async (...more: string[]) => {
      const [command, ...rest] = svcCommand([
        ...["migrate", "adguard", "--from", home.url, "--to", new URL(api.base).origin],
        ...["--user", USER, "--password-file", `${directory.path}/password`, ...more],
      ]);
      return await runProgram(command, ...rest);
    };
    const fragment = `${directory.path}/part.toml`;
    const { stdout, stderr } = await svc("--output", fragment);
    assert.equal(stderr, "");
    assert.match(stdout, /^AdGuard Home v0\.107\.\d+: /m);
    const taken = [
      new RegExp(`^added +list +Ads \\(${url}\\)`, "m"),
      /^added +rule +\|\|ads\.example\^/m,
      /^added +client +Tablet \(192\.168\.1\.21, tablet\)/m,
      /^adapted +group +Tablet +all engines are led, /m,
      /^added +service +tiktok for Default/m,
      /^added +schedule/m,
      /^added +record +nas\.home\.arpa A 192\.168\.1\.5/m,
      /^added +record +\*\.dev\.example CNAME nas\.home\.arpa/m,
      /^added +access +disallowed 192\.168\.1\.66/m,
      /^added +setting +block_response nxdomain/m,
      /^added +setting +block_ttl 60/m,
      /^added +setting +list_update_interval 43200/m,
      /^adapted +file +upstream https:\/\/dns10\.quad9\.net\/dns-query/m,
    ];
    for (const line of taken) assert.match(stdout, line);
    const text = await Deno.readTextFile(fragment);
    assert.match(text, /^domains = \["lan"\]$/m);
    const [command, ...rest] = svcCommand(["check-config", "--config", fragment]);
    assert.equal((await runProgram(command, ...rest)).code, 0);
    const [{ spec }] = (await api.call("GET", "clients")).items;
    assert.deepEqual([spec.name, spec.ids], ["Tablet", ["tablet"]]);
    const again = await svc("--dry-run");
    assert.match(again.stdout, / 0 added, /);
  } finally {
    await list.shutdown();
  }
});
