// Goal: what people come to the dashboard for takes no more presses than it is said to, with a
// pointer, with keys alone, and on a phone of 320 px. Method: each task in a real browser against a
// running service; what it came to is read from the API.

import assert from "node:assert/strict";
import { PASSWORD, USER } from "../../src/migrate/fakes.ts";
import { DEFAULT_GROUP } from "./api.ts";
import {
  BLOCKED,
  BROWSER_PERMISSIONS,
  type By,
  Dashboard,
  IMPORTANT,
  IS_WHOLE,
  PASSED,
  type Visit,
} from "./dashboard.ts";
import { hasProgram, until } from "./harness.ts";
import { serveAdguard } from "./migrate_sources.ts";

const TV = "127.0.0.10";
const UNKNOWN = { pointer: "127.0.0.31", keyboard: "127.0.0.32", phone: "127.0.0.33" } as const;

/** Done in every way in each run; SVC_UI_MATRIX=whole does so with all of them. */
const EVERY_WAY = ["allow what broke the TV, for the TV, for an hour"];

interface Task {
  readonly name: string;
  /** Presses, apart from typing. */
  readonly presses: number;
  /** On a phone, where the page is behind "More". */
  readonly onPhone?: number;
  readonly run: (visit: Visit, dashboard: Dashboard) => Promise<void>;
}

// deno-lint-ignore no-explicit-any -- answers of every shape
type Json = any;

async function items({ api }: Dashboard, collection: string): Promise<Json[]> {
  return (await api.call("GET", collection)).items;
}

const TASKS: readonly Task[] = [
  {
    name: "see that all is well and what is blocked",
    presses: 0,
    run: async (visit) => {
      await visit.sees("Blocked just now");
      await visit.link(/^TV/).waitFor();
      if (visit.by !== "phone") await visit.sees("Filtering");
    },
  },
  {
    name: "allow what broke the TV, for the TV, for an hour",
    presses: 3,
    run: async (visit, dashboard) => {
      await visit.press(visit.link(/^TV/));
      await visit.openRow(IMPORTANT);
      await visit.press(visit.button("Allow for TV, 1 hour"));
      await visit.sees(/^Allowed track\.example for TV until/);
      const { spec } = (await items(dashboard, "rules")).at(-1);
      assert.equal(spec.rule, `@@|${IMPORTANT}^$important`);
      assert.equal(spec.clients.length, 1);
      assert.ok(Date.parse(spec.expires_at) > Date.now() + 3_500_000);
      await visit.press(visit.button("Undo")); // What is done can be undone.
      await visit.sees("Undone");
      visit.clicks--;
      assert.equal((await items(dashboard, "rules")).length, 2);
    },
  },
  {
    name: "pause everybody",
    presses: 2,
    run: async (visit, { api }) => {
      await visit.press(visit.button("Pause"));
      await visit.press(visit.button("5 minutes"));
      await visit.sees(/^Paused [45]:/);
      assert.equal((await api.call("GET", "status")).paused_until !== null, true);
      assert.match(await visit.page.title(), /^⏸ [45]:\d\d Overview/);
      await api.call("DELETE", "pause");
    },
  },
  {
    name: "ask why a name is blocked",
    presses: 1,
    run: async (visit) => {
      if (visit.by === "keyboard") {
        visit.clicks++;
        await visit.page.keyboard.press("/");
      } else await visit.press(visit.button(/^Search, ask why/));
      await visit.page.getByRole("combobox").fill(`pixel.${BLOCKED}`);
      await visit.page.keyboard.press("Enter");
      await visit.sees("decided by Own rules");
      assert.match(visit.page.url(), /\/rules\?test=pixel\.ads\.example$/);
    },
  },
  {
    name: "allow the kids an hour of YouTube",
    presses: 3,
    run: async (visit, { api }) => {
      await visit.goTo("Groups");
      await visit.press(visit.button("YouTube"));
      await visit.press(visit.button("Allow YouTube for 1 hour"));
      await visit.sees(/^YouTube is allowed until/);
      const kids = (await api.call("GET", "groups")).items
        .find(({ spec }: Json) => spec.name === "Kids");
      assert.notEqual(kids.spec.blocked_services[0].paused_until, null);
      kids.spec.blocked_services[0].paused_until = null;
      await api.call("PUT", `groups/${kids.id}`, kids.spec);
    },
  },
  {
    name: "take the Internet from the kids, and give them an hour",
    presses: 5,
    run: async (visit, dashboard) => {
      const kids = async () =>
        (await items(dashboard, "groups")).find(({ spec }) => spec.name === "Kids");
      await visit.goTo("Groups");
      await visit.press(visit.page.getByRole("link", { name: "Kids", exact: true }).first());
      visit.clicks++;
      await visit.field("Internet of Kids").selectOption({ label: "Internet off" });
      await visit.sees(/^Kids has no Internet/);
      assert.equal((await kids()).spec.blocked, true);
      await visit.press(visit.button("More time"));
      await visit.press(visit.button("1 hour"));
      await visit.sees(/^Kids has the Internet until/);
      const { id, spec } = await kids();
      assert.ok(Date.parse(spec.blocked_paused_until) > Date.now());
      await dashboard.api.call("PUT", `groups/${id}`, { ...spec, blocked: false });
    },
  },
  {
    name: "see what a device asks",
    presses: 2,
    run: async (visit) => {
      await visit.goTo("Clients");
      await visit.press(visit.page.locator(".virtual").getByRole("link", { name: "TV" }));
      await visit.sees("Latest queries");
      await visit.sees(IMPORTANT);
    },
  },
  {
    name: "name a new device",
    presses: 3,
    run: async (visit, dashboard) => {
      await visit.goTo("Clients");
      await visit.press(visit.link(/^New/));
      const address = UNKNOWN[visit.by];
      await visit.field(`Name of ${address}`).fill(`Device ${visit.by}`);
      const row = visit.page.locator(".new-client", { hasText: address });
      await visit.press(row.getByRole("button", { name: "Save" }));
      await visit.sees(`Added Device ${visit.by}`);
      const made = (await items(dashboard, "clients")).at(-1).spec;
      assert.deepEqual([made.name, made.addresses], [`Device ${visit.by}`, [address]]);
    },
  },
  {
    name: "block a name for all for ever",
    presses: 3,
    run: async (visit, dashboard) => {
      await visit.goTo("Log");
      await visit.openRow(PASSED);
      await visit.press(visit.button("Block for everybody, for ever"));
      await visit.sees(/^Blocked www\.news\.example for everybody for ever/);
      const made = (await items(dashboard, "rules")).at(-1);
      assert.equal(made.spec.rule, `|${PASSED}^`);
      await dashboard.api.call("DELETE", `rules/${made.id}`);
    },
  },
  {
    name: "add a recommended list",
    presses: 3,
    onPhone: 4,
    run: async (visit) => {
      const sent: string[] = [];
      // It would be downloaded: what is sent is what there is to see.
      await visit.page.route("**/api/v1/lists", async (route) => {
        if (route.request().method() !== "POST") return await route.continue();
        const spec = route.request().postDataJSON();
        sent.push(spec.url);
        await route.fulfill({
          status: 201,
          json: { id: "li_0123456789abcdef", revision: 1, spec },
        });
      });
      await visit.page.route("**/api/v1/groups/*", async (route) => {
        const spec = route.request().postDataJSON();
        sent.push(JSON.stringify(spec.lists));
        await route.fulfill({ status: 200, json: { id: DEFAULT_GROUP, revision: 2, spec } });
      });
      await visit.goTo("Lists");
      await visit.press(visit.link("Recommended"));
      await visit.press(
        visit.page.getByRole("switch", { name: "AdGuard DNS filter", exact: true }),
      );
      await visit.sees(/^Added AdGuard DNS filter/);
      await until("its groups are sent", () => sent.length === 2);
      assert.match(sent[0], /^https:/);
      assert.match(sent[1], /li_0123456789abcdef/);
    },
  },
  {
    name: "add a record of one's own",
    presses: 3,
    onPhone: 4,
    run: async (visit, dashboard) => {
      await visit.goTo("Records");
      await visit.press(visit.button("Add record"));
      await visit.field("Name").fill(`${visit.by}.home.arpa`);
      await visit.field("Value").fill("192.168.1.9");
      await visit.press(visit.button("Save"));
      await visit.sees(`Added ${visit.by}.home.arpa`);
      assert.equal((await items(dashboard, "records")).at(-1).spec.value, "192.168.1.9");
    },
  },
  {
    name: "see who changed it",
    presses: 1,
    onPhone: 2,
    run: async (visit) => {
      await visit.goTo("Audit");
      await visit.sees("Somebody on this machine");
      await visit.sees("added device");
    },
  },
  {
    name: "see that a member of the cluster is down",
    presses: 0,
    run: async (visit) => {
      const message =
        "cluster: member cellar can't be reached: nothing was heard of it for a while";
      await visit.page.route("**/api/v1/status", async (route) => {
        const response = await route.fetch();
        const since = new Date().toISOString();
        const json = await response.json();
        json.problem_items = [{ code: "cluster", message, since, resource: null }];
        await route.fulfill({ response, json });
      });
      await visit.page.reload();
      await visit.sees(message);
      const href = await visit.link("Look").getAttribute("href");
      assert.equal(href, "/cluster", "where it can be seen to");
    },
  },
  {
    name: "get private DNS for a phone",
    presses: 2,
    onPhone: 3,
    run: async (visit) => {
      await visit.goTo("Connect a device");
      await visit.press(visit.page.getByRole("radio", { name: "Android" }), " ");
      await visit.sees(/Private DNS provider hostname/);
    },
  },
  {
    name: "have a service blocked at bedtime",
    presses: 7,
    onPhone: 8,
    run: async (visit, dashboard) => {
      const name = `Bedtime ${visit.by}`;
      await visit.goTo("Schedules");
      await visit.press(visit.button("New schedule"));
      await visit.field("Name").fill(name);
      await paintEvening(visit);
      await visit.press(visit.button("Save"));
      await visit.sees(`Added ${name}`);
      await visit.goTo("Groups");
      const card = visit.page.locator(".group-card", { hasText: "Kids" });
      await visit.press(card.getByRole("link", { name: /services? blocked/ }));
      visit.clicks++;
      await visit.field("When Roblox holds").selectOption({ label: name });
      await visit.sees("Saved Roblox");
      const [schedule] = (await items(dashboard, "schedules")).slice(-1);
      const kids = (await items(dashboard, "groups")).find(({ spec }) => spec.name === "Kids");
      const set = kids.spec.blocked_services.find(({ service }: Json) => service === "roblox");
      assert.equal(set.schedule, schedule.id);
    },
  },
];

/** Looks, and moves: who comes from AdGuard Home, and again. */
async function moveHere(dashboard: Dashboard, by: By): Promise<void> {
  await using source = serveAdguard();
  await using visit = await dashboard.visit({ by });
  await visit.open("/lists");
  await visit.press(visit.link("Move from another product"));
  await visit.field("Address").fill(source.url);
  await visit.field(/^User/).fill(USER);
  await visit.field(/^Password/).fill("not this one");
  await visit.press(visit.button("Look"));
  await visit.sees(/it takes no such user with this password/);
  await visit.field(/^Password/).fill(PASSWORD);
  const before = await dashboard.api.call("GET", "backup");
  await visit.press(visit.button("Look"));
  await visit.sees("This is what would become of each thing; nothing is changed yet.");
  const { made_at: _, ...looked } = await dashboard.api.call("GET", "backup");
  const { made_at: __, ...was } = before;
  assert.deepEqual(looked, was, "a look changes nothing");
  await visit.press(visit.page.getByRole("radio", { name: /^Not possible \d+$/ }), "Space");
  await visit.sees(/client='Laptop'/);
  assert.equal(await visit.page.getByText("lists.example/ads.txt").count(), 0);
  await visit.assertFits();
  await visit.picture(`move-${by}`);
  await visit.press(visit.button("Move"));
  await visit.sees("It is done: what was missing is here.");
  await visit.sees(/client='Laptop'/);
  assert.ok((await items(dashboard, "clients")).some(({ spec }) => spec.name === "Tablet"));
  await visit.sees(/^# Taken from AdGuard Home/);
  await visit.press(visit.page.getByRole("radio", { name: /^There already \d+$/ }), "Space");
  await visit.assertFits();
}

/** Paints some hours of Monday: with the pointer, with keys, or with the row of a phone. */
async function paintEvening(visit: Visit): Promise<void> {
  visit.clicks++;
  const cell = (step: number) => visit.page.locator(`[data-day="0"][data-step="${step}"]`);
  if (visit.by === "phone") return await visit.button("Add times").click();
  if (visit.by === "keyboard") {
    await visit.page.locator('.week [tabindex="0"]').focus();
    await visit.page.keyboard.press("Space");
    for (let i = 0; i < 3; i++) await visit.page.keyboard.press("Shift+ArrowRight");
    return;
  }
  await cell(42).hover();
  await visit.page.mouse.down();
  await cell(45).hover();
  await visit.page.mouse.up();
}

Deno.test({
  name: "the dashboard's tasks take no more presses than they should",
  ignore: !hasProgram("chromium"),
  permissions: BROWSER_PERMISSIONS,
  fn: async (t) => {
    await using dashboard = await Dashboard.start();
    const { api } = dashboard;
    await api.create("groups", {
      name: "Kids",
      blocked_services: [{ service: "youtube" }, { service: "tiktok" }],
    });
    await api.create("clients", { name: "TV", addresses: [TV] });
    await dashboard.ask(TV, BLOCKED, PASSED, IMPORTANT);
    for (const address of Object.values(UNKNOWN)) await dashboard.ask(address, "first.example");
    const ways: readonly By[] = ["pointer", "keyboard", "phone"];
    for (const [at, by] of ways.entries()) {
      await t.step(`by ${by}`, async (t) => {
        for (const [index, task] of TASKS.entries()) {
          // Each in one of the ways, what people come for most in all of them.
          if (!IS_WHOLE && index % ways.length !== at && !EVERY_WAY.includes(task.name)) continue;
          await t.step(task.name, async () => {
            await using visit = await dashboard.visit({ by });
            await visit.open("/");
            await task.run(visit, dashboard);
            await visit.assertFits();
            const most = by === "phone" ? task.onPhone ?? task.presses : task.presses;
            assert.ok(visit.clicks <= most, `${visit.clicks} presses, not ${most}`);
          });
        }
      });
    }
    for (const by of IS_WHOLE ? ways : ["keyboard", "phone"] as const) {
      await t.step(`move from another product, by ${by}`, () => moveHere(dashboard, by));
    }
    dashboard.service.assertCalm();
  },
});
