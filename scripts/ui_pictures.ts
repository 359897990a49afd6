/**
 * Takes the README's pictures of the dashboard into `ui/pictures/`, of a service with a household's
 * day in it.
 *
 * @module
 */
import { Dashboard } from "../tests/e2e/dashboard.ts";
import { ROOT } from "../tests/e2e/harness.ts";

const FOLDER = `${ROOT}ui/pictures/`;
const DEVICES = ["TV", "Anna's phone", "Ben's laptop", "Printer", "Kids' tablet", "Thermostat"];
const NAMES = [
  ...["www.news.example", "cdn.video.example", "api.chat.example", "mail.home.example"],
  ...["updates.system.example", "maps.example", "music.example", "weather.example"],
];
const BLOCKED_NAMES = ["ads.example", "pixel.ads.example", "track.example", "youtube.example"];
const SHOTS = [
  { name: "overview", path: "/", theme: "light", by: "pointer" },
  { name: "log", path: "/log?outcome=blocked", theme: "dark", by: "pointer" },
  { name: "group", path: "/groups", theme: "light", by: "pointer" },
  { name: "phone", path: "/", theme: "dark", by: "phone" },
] as const;

// deno-lint-ignore no-explicit-any -- the API's answer, with other numbers
function dayOf(stats: any): unknown {
  const outcomes: Record<string, number> = { ...stats.outcomes };
  for (const name of Object.keys(outcomes)) outcomes[name] = 0;
  // deno-lint-ignore no-explicit-any -- likewise
  const series = stats.series.map((row: any, i: number) => {
    const hour = new Date(row.time).getHours() + new Date(row.time).getMinutes() / 60;
    const awake = Math.max(0.12, Math.sin(((hour - 6.5) / 16.5) * Math.PI));
    const wave = 1 + 0.14 * Math.sin(i * 1.7) + 0.16 * Math.sin(i * 0.37);
    const all = Math.round(140 * awake * wave);
    const counts: Record<string, number> = {
      blocked: Math.round(all * 0.19),
      forwarded: Math.round(all * 0.24),
      cached: Math.round(all * 0.52),
      local: Math.round(all * 0.04),
      failed: Math.round(all * 0.01),
    };
    for (const [name, count] of Object.entries(counts)) outcomes[name] += count;
    return { ...row, ...counts, latency: { p50_ms: 4 + 2 * wave, p95_ms: 31, p99_ms: 62 } };
  });
  const total = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  const previous = { ...stats.previous, total: Math.round(total * 0.96), outcomes };
  return {
    ...stats,
    total,
    outcomes,
    series,
    previous,
    latency: { p50_ms: 6.2, p95_ms: 31, p99_ms: 62 },
  };
}

await Deno.mkdir(FOLDER, { recursive: true });
await using dashboard = await Dashboard.start();
const { api } = dashboard;
const kids = await api.create("groups", {
  name: "Kids",
  safe_search: true,
  blocked_services: [{ service: "youtube" }, { service: "tiktok" }, { service: "roblox" }],
});
await api.create("groups", { name: "Guests", blocked_services: [{ service: "tiktok" }] });
await api.create("groups", { name: "Things", safe_search: true });
for (const [i, name] of DEVICES.entries()) {
  const group = name.startsWith("Kids") ? { group: kids } : {};
  await api.create("clients", { name, addresses: [`127.0.0.${10 + i}`], ...group });
}
for (let round = 0; round < 40; round++) {
  for (const i of DEVICES.keys()) {
    if ((round * 7 + i) % (i + 2) !== 0) continue;
    const some = NAMES.filter((_, at) => (at + round + i) % 3 === 0);
    const blocked = BLOCKED_NAMES.filter((_, at) => (at + round) % (4 + i) === 0);
    await dashboard.ask(`127.0.0.${10 + i}`, ...some, ...blocked);
  }
}
const password = "a password for pictures";
await api.call("POST", "users", { name: "ann", role: "admin", password });
for (const { name, path, theme, by } of SHOTS) {
  await using visit = await dashboard.visit({
    theme,
    by,
    viewport: by === "phone" ? { width: 360, height: 720 } : { width: 1_180, height: 720 },
  });
  // A service that was just started has no day behind it: the chart gets one.
  await visit.page.route("**/api/v1/stats?*", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: dayOf(await response.json()) });
  });
  const data = { name: "ann", password };
  await visit.page.request.post(`${api.base}/auth/login`, { data });
  await visit.open(path);
  await visit.settled();
  if (name === "log") await visit.openRow("track.example");
  await visit.settled();
  await visit.page.waitForTimeout(500); // The chart is drawn behind what it is drawn of.
  await visit.page.screenshot({ path: `${FOLDER}${name}.png` });
}
