import { Dashboard } from "./e2e/dashboard.ts";
import { fillLog } from "./e2e/full_log.ts";
const OUT = "/tmp/pics";
await Deno.mkdir(OUT, { recursive: true });
const two = (i: number) => `192.168.1.${i % 250 + 2}`;
await using d = await Dashboard.start(
  { store: { path: "store" } },
  (dir) => fillLog(`${dir}/store/querylog`, 30_000, 14, two),
);
const { api } = d;
const kids = await api.create("groups", {
  name: "Kids",
  safe_search: true,
  blocked_services: [{ service: "youtube" }, {
    service: "tiktok",
    paused_until: new Date(Date.now() + 3.6e6).toISOString(),
  }],
});
const names = ["TV", "Anna's phone", "Ben's laptop", "Printer", "Kids' tablet", "Thermostat"];
const ids = [];
for (const [i, name] of names.entries()) {
  ids.push(
    await api.create("clients", {
      name,
      addresses: [two(i)],
      ids: i === 1 ? ["annas-phone"] : [],
      ...(i === 4 && { group: kids }),
    }),
  );
}
const sc = await api.create("schedules", {
  name: "Bedtime",
  time_zone: "Europe/Berlin",
  windows: [{ days: ["mon", "tue", "wed", "thu", "sun"], start: "20:30", end: "06:30" }, {
    days: ["fri", "sat"],
    start: "22:00",
    end: "07:00",
  }],
});
await api.create("lists", { name: "AdGuard DNS filter", url: "https://127.0.0.1:1/filter.txt" });
await api.create("lists", {
  name: "A list with quite a long name, of trackers and telemetry",
  url: "https://127.0.0.1:1/a/very/long/path/to/a/list/that/does/not/fit/filter.txt",
  enabled: false,
});
await api.create("records", {
  name: "nas.home.arpa",
  type: "A",
  value: "192.168.1.5",
  comment: "in the cellar",
});
await api.create("rules", {
  rule: "@@||news.example^$important",
  comment: "wanted",
  clients: [ids[0]],
  expires_at: new Date(Date.now() + 3.6e6).toISOString(),
});
await api.create("rules", { rule: "||a-rather-long-subdomain.of-some-tracker.telemetry.example^" });
await d.ask("127.0.0.77", "ads.example", "www.news.example");
await d.ask("127.0.0.78", "ads.example");
const password = "a password for pictures";
await api.call("POST", "users", { name: "ann", role: "admin", password });
const pages = [
  "/",
  "/log",
  "/log?distinct=name",
  "/lists",
  "/lists?tab=recommended",
  "/rules?test=ads.example",
  "/records",
  "/clients",
  "/clients?tab=new",
  `/clients/${ids[0]}`,
  "/groups",
  `/groups/${kids}`,
  `/groups/${kids}?tab=services`,
  `/groups/${kids}?tab=clients`,
  "/schedules",
  `/schedules/${sc}`,
  "/settings",
  "/users",
  "/account",
  "/connect",
  "/connect?system=android",
  "/leak-test",
  "/audit",
];
const only = Deno.args[0] ? pages.filter((p) => new RegExp(Deno.args[0]).test(p)) : pages;
for (
  const [look, o] of Object.entries(
    {
      en: { theme: "light", by: "pointer" },
      de: { theme: "dark", by: "pointer", locale: "de-DE" },
      ph: { theme: "light", by: "phone", locale: "de-DE" },
    } as any,
  )
) {
  await using v = await d.visit({
    ...(o as any),
    ...(look === "ph" && { viewport: { width: 360, height: 1400 } }),
    ...(look !== "ph" && { viewport: { width: 1280, height: 1000 } }),
  });
  await v.page.request.post(`${api.base}/auth/login`, { data: { name: "ann", password } });
  for (const p of only) {
    await v.open(p);
    await v.settled();
    await v.page.waitForTimeout(400);
    await v.page.screenshot({ path: `${OUT}/${p.replace(/\W+/g, "_")}-${look}.png` });
  }
  if (!Deno.args[0]) {
    await v.open("/log");
    await v.page.locator(".virtual-row").first().click();
    await v.page.waitForTimeout(600);
    await v.page.screenshot({ path: `${OUT}/drawer-${look}.png` });
  }
  if (look === "en") {
    await v.open("/");
    await v.settled();
    await v.page.setViewportSize({ width: 718, height: 1047 });
    await v.page.emulateMedia({ media: "print" });
    await v.page.evaluate("dispatchEvent(new Event('beforeprint'))");
    await v.page.waitForTimeout(300);
    await v.page.screenshot({ path: `${OUT}/print-over.png`, fullPage: true });
    await v.page.evaluate("dispatchEvent(new Event('afterprint'))");
    await v.open("/log");
    await v.settled();
    await v.page.locator(".virtual-row").first().waitFor();
    await v.page.emulateMedia({ media: "print" });
    await v.page.evaluate("dispatchEvent(new Event('beforeprint'))");
    await v.page.waitForTimeout(300);
    await v.page.screenshot({ path: `${OUT}/print-log.png`, fullPage: true });
  }
}
