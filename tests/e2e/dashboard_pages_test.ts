// Goal: every page stands in both themes and languages, wide and at 320 px, for admins and viewers, in
// a fresh service and in one full of names that want to be something else; it breaks no rule of its
// policy or of accessibility, and asks nobody but its own service. Method: axe-core in a real browser.
// SVC_UI_MATRIX=whole tries every combination, SVC_UI_PICTURES=DIR keeps what was seen.

import assert from "node:assert/strict";
import { PAGE_PATHS } from "../../ui/page_paths.ts";
import {
  BLOCKED,
  BROWSER_PERMISSIONS,
  Dashboard,
  IS_WHOLE,
  PASSED,
  type Visit,
} from "./dashboard.ts";
import { hasProgram, PROGRAM, ROOT, until } from "./harness.ts";

const AXE = await Deno.readTextFile(`${ROOT}node_modules/axe-core/axe.min.js`);

interface Look {
  readonly theme: "light" | "dark";
  readonly locale: "en-GB" | "de-DE";
  readonly by: "pointer" | "phone";
}

const ALL_LOOKS: readonly Look[] = (["light", "dark"] as const).flatMap((theme) =>
  (["en-GB", "de-DE"] as const).flatMap((locale) =>
    (["pointer", "phone"] as const).map((by): Look => ({ theme, locale, by }))
  )
);
/** Each theme, language and width once. */
const LOOKS: readonly Look[] = IS_WHOLE ? ALL_LOOKS : [
  { theme: "light", locale: "en-GB", by: "pointer" },
  { theme: "dark", locale: "de-DE", by: "phone" },
];

/** Names as people with ideas choose them; what the API refuses is left out. */
const HOSTILE = [
  "<img src=x onerror=alert(1)>",
  "'\"><script>document.title='gone'</script>",
  "{{constructor.constructor('alert(1)')()}}",
  "שלום עולם",
  "W".repeat(120),
];

/** The same nodes of a page may differ in their numbers: what counts is which rule is broken. */
async function assertAccessible(visit: Visit, what: string): Promise<void> {
  const violations = await visit.page.evaluate(
    `(async () => {
      const { violations } = await axe.run(document, { resultTypes: ["violations"] });
      return violations.map(({ id, nodes }) => id + ": " +
        nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | "));
    })()`,
  );
  assert.deepEqual(violations, [], what);
}

async function look(
  visit: Visit,
  target: string,
  name: string,
  isChecked = true,
): Promise<void> {
  await visit.open(target);
  await visit.settled();
  await visit.assertFits();
  if (isChecked) await assertAccessible(visit, name);
  await visit.picture(name);
}

async function fill(dashboard: Dashboard): Promise<string[]> {
  const { api } = dashboard;
  const group = await api.create("groups", {
    name: HOSTILE[0],
    safe_search: true,
    lists: [],
    blocked_services: [{ service: "youtube" }],
  });
  const client = await api.create("clients", {
    name: HOSTILE[1],
    addresses: ["127.0.0.10"],
    group,
  });
  for (const [i, name] of HOSTILE.slice(2).entries()) {
    await api.create("clients", { name, addresses: [`127.0.0.${20 + i}`] });
  }
  const schedule = await api.create("schedules", {
    name: HOSTILE[2],
    time_zone: "Europe/Berlin",
    windows: [{ days: ["fri", "sat"], start: "22:00", end: "06:00" }],
  });
  for (const comment of [...HOSTILE, "\u202Egnp.exe", "a\u0007b"]) {
    await api.call("POST", "rules", { rule: "||hostile.example^", comment });
  }
  await api.create("records", { name: "nas.home.arpa", type: "A", value: "192.168.1.5" });
  for (const name of HOSTILE) {
    await api.create("tokens", { name, role: "viewer", expires_at: "2030-01-01T00:00:00Z" });
    const url = "https://hook.example/path";
    await api.create("webhooks", { name, url, events: ["client_seen", "member_back"] });
  }
  await dashboard.ask(
    "127.0.0.10",
    BLOCKED,
    PASSED,
    `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.example`,
  );
  await dashboard.ask("127.0.0.77", BLOCKED);
  return [`/clients/${client}`, `/groups/${group}?tab=services`, `/schedules/${schedule}`];
}

Deno.test({
  name: "every page of the dashboard stands, whoever looks and whatever is in it",
  ignore: !hasProgram("chromium"),
  permissions: BROWSER_PERMISSIONS,
  fn: async (t) => {
    await using dashboard = await Dashboard.start({ filter: { rules: [`||${BLOCKED}^`] } });
    const plain = PAGE_PATHS.filter((path) => !path.includes(":") && path !== "/leak-test");
    const visitAs = async (one: Look, session?: string) => {
      const visit = await dashboard.visit({ ...one, ...(session !== undefined && { session }) });
      await visit.page.addInitScript(AXE);
      return visit;
    };
    const nameOf = (target: string, { theme, locale, by }: Look, who: string) =>
      `${target.replace(/\W+/g, "_")}-${theme}-${locale}-${by}-${who}`;
    await t.step("empty", async () => {
      await using visit = await visitAs({ theme: "dark", locale: "en-GB", by: "pointer" });
      for (
        const path of IS_WHOLE ? plain : ["/", "/log"] as const
      ) {
        await look(visit, path, nameOf(path, ALL_LOOKS[0], "empty"));
      }
    });
    const own = await fill(dashboard);
    for (const [at, one] of LOOKS.entries()) {
      await t.step(`full, ${Object.values(one).join(", ")}`, async () => {
        await using visit = await visitAs(one);
        for (const [i, target] of [...plain, ...own, "/no-such-page"].entries()) {
          // What takes the time is the look at accessibility: each page has one in each run.
          const isChecked = IS_WHOLE || i % LOOKS.length === at;
          await look(visit, target, nameOf(target, one, "admin"), isChecked);
        }
        assert.notEqual(await visit.page.title(), "gone");
      });
    }
    await t.step("who asked has the run of that beside the number, for eyes alone", async () => {
      await using visit = await visitAs(LOOKS[0]);
      const asked: string[] = [];
      visit.page.on("request", (request) => {
        const { pathname, searchParams } = new URL(request.url());
        if (pathname.endsWith("/clients/series")) asked.push(searchParams.get("clients") ?? "");
      });
      await visit.open("/clients");
      const run = visit.page.locator(".k-queries svg.sparkline");
      await run.waitFor();
      assert.equal(await run.getAttribute("aria-hidden"), "true");
      assert.equal(await run.textContent(), "");
      const cell = visit.page.locator(".k-queries", { has: visit.page.locator("svg") });
      assert.equal(await cell.textContent(), "3");
      assert.deepEqual(asked, [own[0].slice("/clients/".length)]);
      await visit.open("/");
      await visit.page.locator(".tile", { hasText: "Devices" }).locator("svg.sparkline").waitFor();
      await visit.open("/?hours=168");
      await visit.settled();
      const tile = visit.page.locator(".tile", { hasText: "Devices" });
      await tile.waitFor();
      assert.equal(await tile.locator("svg.sparkline").count(), 0);
    });
    await t.step("the legend switches each outcome, by pointer and by key", async () => {
      await using visit = await visitAs(LOOKS[0]);
      const { page } = visit;
      await visit.open("/?hours=1");
      const switches = page.getByRole("group", { name: "Outcomes in the chart" })
        .getByRole("button");
      await switches.first().waitFor();
      assert.equal(await switches.count(), 9);
      const legend = page.locator(".legend");
      const tells = (what: string) =>
        until(what, async () => (await legend.textContent())?.includes(what) ?? false);
      await tells("Blocked");
      const hidden: string[] = [];
      for (let i = 0; i < 9; i++) {
        const one = switches.nth(i);
        const key = [null, "Enter", "Space"][i % 3];
        if (key === null) await one.click();
        else await one.press(key);
        await page.locator(`.legend-switches button:nth-child(${i + 1})[aria-pressed=false]`)
          .waitFor();
        const told = new URL(page.url()).searchParams.get("hidden")?.split(",") ?? [];
        assert.equal(told.length, i + 1);
        hidden.push(told.at(-1)!);
        if (i === 0) assert.ok(!(await legend.textContent())?.includes("Blocked"));
      }
      assert.equal(new Set(hidden).size, 9);
      assert.equal(await legend.textContent(), "");
      await assertAccessible(visit, "legend, all switched off");
      await page.reload();
      await page.locator(".legend-switches [aria-pressed=false]").nth(8).waitFor();
      await visit.button("As table").click();
      await page.locator(".chart-table tbody tr").first().waitFor();
      const blocked = await page.locator(".chart-table tbody td:nth-child(2)").allTextContents();
      assert.ok(blocked.some((count) => Number(count) > 0), "the table is of all");
      await visit.button("As chart").click();
      for (let i = 0; i < 9; i++) await switches.nth(i).press("Space");
      await until("none is hidden", () => !page.url().includes("hidden"));
      await tells("Blocked");
    });
    await t.step("a drawer, a dialog and the search", async () => {
      await using visit = await visitAs(LOOKS[0]);
      await visit.open("/log");
      await visit.openRow(BLOCKED);
      await assertAccessible(visit, "drawer");
      await visit.page.keyboard.press("Escape");
      await visit.page.keyboard.press("/");
      await visit.page.getByRole("combobox").waitFor();
      await assertAccessible(visit, "search");
      await visit.open("/schedules");
      await visit.button("New schedule").click();
      await visit.page.locator(".week").waitFor();
      await assertAccessible(visit, "dialog");
      await visit.open("/webhooks");
      await visit.button("Add webhook").click();
      await visit.field("A list can't be had").waitFor();
      await assertAccessible(visit, "webhook");
    });
    await t.step("a viewer reads and changes nothing", async () => {
      const password = "a password to look 1";
      await dashboard.api.call("POST", "users", { name: "root", role: "admin", password });
      await using admin = await dashboard.visit({ theme: "light" });
      await admin.page.request.post(`${dashboard.api.base}/auth/login`, {
        data: { name: "root", password },
      });
      const post = await admin.page.request.post(`${dashboard.api.base}/users`, {
        data: { name: "looker", role: "viewer", password },
      });
      assert.equal(post.status(), 201);
      const login = await fetch(`${dashboard.api.base}/auth/login`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: "looker", password }),
      });
      await login.body?.cancel();
      const session = /svc_session=([^;]+)/.exec(login.headers.get("set-cookie") ?? "")![1];
      await using visit = await visitAs(LOOKS[0], session);
      const targets = IS_WHOLE
        ? [...plain, ...own].filter((path) => path !== "/sign-in" && path !== "/setup")
        : ["/", "/log", "/lists", "/settings", "/users", ...own];
      for (const target of targets) {
        await look(visit, target, nameOf(target, LOOKS[0], "viewer"));
        if (target === "/account" || target === "/reset") continue;
        await visit.sees("Read only");
        assert.equal(
          await visit.page.locator("main .button.danger, main [type=submit]").count(),
          0,
        );
        assert.equal(
          await visit.page.locator("main [role=switch]:enabled").count(),
          target === "/log" ? 1 : 0,
          target,
        );
      }
      await visit.page.route("**/api/v1/status", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        const encrypted = { server_name: "dns.example", require_client_id: false, not_after: null };
        const listeners = [...json.listeners, { protocol: "dot", address: "127.0.0.1:853" }];
        await route.fulfill({ response, json: { ...json, encrypted, listeners } });
      });
      await visit.open("/connect?system=apple");
      await visit.sees("An admin makes the profile for this.");
      for (const step of ["admin", "preset"]) {
        await visit.open(`/setup?step=${step}`);
        await visit.sees("An admin does this step");
        assert.equal(await visit.page.locator("main .choices, main form").count(), 0);
      }
      await visit.button("Next").click();
      await visit.sees("Who answers the rest");
    });
    dashboard.service.assertCalm();
  },
});

Deno.test({
  name: "a checkout and a built file serve the dashboard with its policy",
  ignore: !hasProgram("chromium"),
  permissions: BROWSER_PERMISSIONS,
  fn: async () => {
    await using dashboard = await Dashboard.start();
    const shell = await fetch(`${dashboard.origin}/reset?token=secret`);
    assert.equal(shell.status, 200, PROGRAM ?? "the checkout");
    assert.match(shell.headers.get("content-security-policy") ?? "", /trusted-types 'none'/);
    const html = await shell.text();
    const [, script] = /<script type="module" src="(\/assets\/[^"]+)"/.exec(html)!;
    const main = await fetch(dashboard.origin + script);
    assert.equal(main.headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.match(await main.text(), /svc/);
    for (
      const [path, status] of [["/nowhere", 404], ["/api/v1/nowhere", 404], ["/log", 200]] as const
    ) {
      const response = await fetch(dashboard.origin + path);
      await response.body?.cancel();
      assert.equal(response.status, status, path);
    }
  },
});
