// Goal: what takes more than a press does what it says: the week of a schedule, a backup and its way
// back, pages on paper, a cluster's members, names that want to be something else. Method: a real
// browser against one service; a cluster is told by a status that is put in the place of its own.
// SVC_UI_MATRIX=whole looks at more spans of time, and at names on wide screens as well.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Page } from "playwright-core";
import {
  BLOCKED,
  BROWSER_PERMISSIONS,
  Dashboard,
  IS_WHOLE,
  PASSED,
  type Visit,
} from "./dashboard.ts";
import { hasProgram, until } from "./harness.ts";

// deno-lint-ignore no-explicit-any -- answers of every shape
type Json = any;

/** The windows that the form shows now. */
async function windowsOf(visit: Visit): Promise<string[]> {
  const rows = await visit.page.locator(".window").all();
  return await Promise.all(rows.map(async (row) => {
    const days = await row.locator("[aria-pressed=true]").allTextContents();
    const times = row.locator("input[type=time]");
    const [start, end] = [await times.nth(0).inputValue(), await times.nth(1).inputValue()];
    return `${days.join(" ")} ${start}-${end}`;
  }));
}

async function assertWeek(visit: Visit, ...want: string[]): Promise<void> {
  let got: string[] = [];
  await until(want.join("; "), async () => {
    got = await windowsOf(visit);
    return got.join() === want.join();
  }).catch(() => assert.deepEqual(got, want));
}

/** Drags from a place of one cell to another cell. */
async function drag(
  page: Page,
  from: string,
  place: "begin" | "middle" | "end",
  to: string,
): Promise<void> {
  const { x, y, width, height } = (await page.locator(from).boundingBox())!;
  const at = { begin: 2, middle: width / 2, end: width - 2 }[place];
  await page.mouse.move(x + at, y + height / 2);
  await page.mouse.down();
  await page.locator(to).hover();
  await page.mouse.up();
}

const cell = (day: number, step: number) => `[data-day="${day}"][data-step="${step}"]`;

/** Notes, whenever another drawer or none is there, where the focus is and what is out of reach. */
const SEE_DRAWERS = `
  var seenDrawers = [];
  {
    let last = null;
    new MutationObserver(() => {
      const drawer = document.querySelector(".drawer");
      if (drawer === last) return;
      last = drawer;
      const focus = document.activeElement.closest(".drawer, .virtual");
      const where = focus === null ? "nowhere" : focus === drawer ? "drawer" : "list";
      const isShut = document.querySelector("[inert]") !== null;
      seenDrawers.push((drawer === null ? "closed: " : "open: ") + where +
        (isShut ? ", others out of reach" : ", all in reach"));
    }).observe(document.body, { childList: true, subtree: true });
  }
`;

/** Notes, whenever other dialogs or none are there, which these are and where the focus is. */
const SEE_DIALOGS = `
  var seenDialogs = [];
  {
    let last = "none";
    const titleOf = (dialog) => dialog.querySelector("h2").textContent;
    new MutationObserver(() => {
      const shown = [...document.querySelectorAll("dialog")].map(titleOf).join(", ") || "none";
      if (shown === last) return;
      last = shown;
      const focus = document.activeElement;
      const dialog = focus.closest("dialog");
      const where = dialog === null ? "" : " of " + titleOf(dialog);
      seenDialogs.push(shown + ": " + focus.localName + where);
    }).observe(document.body, { childList: true, subtree: true });
  }
`;

/** Pages of a PDF. */
function pagesOf(pdf: Uint8Array): number {
  return new TextDecoder("latin1").decode(pdf).match(/\/Type\s*\/Page\b(?!s)/g)?.length ?? 0;
}

function clusterOf(own: Json, more: Json = {}): Json {
  const member = (node: string, rest: Json = {}) => ({
    node,
    address: "192.0.2.1:8054",
    this_node: false,
    membership: "voter",
    witness: false,
    reachable: true,
    state: "follower",
    version: own.version,
    matched: 42,
    ...rest,
  });
  return {
    ...own,
    cluster: {
      ...own.cluster,
      cluster: "c1",
      state: "follower",
      leader: "attic",
      members: [
        member(own.node, { this_node: true }),
        member("attic", { state: "leader", matched: 50 }),
        member("cellar <b>", { reachable: false, state: "unknown", witness: true, version: null }),
        member("shed", { membership: "configured", matched: undefined }),
      ],
      problems: ["cellar <b>: it does not answer"],
      ...more,
    },
  };
}

async function inCluster({ page }: Visit, more: Json = {}): Promise<void> {
  await page.route("**/api/v1/status", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: clusterOf(await response.json(), more) });
  });
}

/** Names in DNS that a log shows: markup, control characters, other directions, the longest. */
const WIRE_NAMES = [
  "<script>alert\\(1\\)</script>.example",
  "a\\000b\\010c.example",
  "\\226\\128\\174gnp.example", // U+202E
  `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}`,
];
const HOSTILE = [
  "<img src=x onerror=document.title='gone'>",
  "'\"><svg/onload=document.title='gone'>",
  "\u202egnp.exe\u2066",
  "שלום עולם",
  "W".repeat(128),
];

Deno.test({
  name: "the parts of the dashboard do what they say",
  ignore: !hasProgram("chromium"),
  permissions: BROWSER_PERMISSIONS,
  fn: async (t) => {
    await using dashboard = await Dashboard.start();
    const { api } = dashboard;
    await t.step(
      "a week is painted, moved, resized and copied, by pointer and by keys",
      async () => {
        await using visit = await dashboard.visit();
        const { page } = visit;
        await visit.open("/schedules");
        await visit.button("New schedule").click();
        await page.locator(".week").waitFor();
        await drag(page, cell(0, 42), "middle", cell(0, 45));
        await assertWeek(visit, "Mon 21:00-23:00");
        await drag(page, cell(0, 45), "end", cell(0, 46));
        await assertWeek(visit, "Mon 21:00-23:30");
        await drag(page, cell(0, 42), "begin", cell(0, 40));
        await assertWeek(visit, "Mon 20:00-23:30");
        await drag(page, cell(0, 41), "middle", cell(2, 43)); // Two days and an hour on.
        await assertWeek(visit, "Wed 21:00-00:30");
        await drag(page, '.week-day[data-day="2"]', "middle", '.week-day[data-day="4"]');
        await assertWeek(visit, "Wed 21:00-00:30", "Fri 21:00-00:00");
        await page.locator(cell(4, 43)).click(); // A half hour in its middle is let go.
        await assertWeek(visit, "Wed 21:00-00:30", "Fri 21:00-21:30", "Fri 22:00-00:00");

        await page.keyboard.press("Delete");
        await assertWeek(visit, "Wed 21:00-00:30");
        await page.locator(cell(2, 45)).focus();
        await page.locator(cell(2, 45)).evaluate((element) => (element as Json).focus());
        for (const key of ["ArrowUp", "ArrowUp", "ArrowRight", "ArrowRight"]) {
          await page.keyboard.press(key); // From Friday 21:30 to Wednesday 22:30.
        }
        await page.keyboard.press("Control+ArrowDown");
        await assertWeek(visit, "Thu 21:00-00:30");
        await page.keyboard.press("Control+ArrowLeft");
        await assertWeek(visit, "Thu 20:30-00:00");
        for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight"); // Near its end.
        await page.keyboard.press("Control+Shift+ArrowLeft");
        await assertWeek(visit, "Thu 20:30-23:30");
        await page.keyboard.press("Enter");
        await page.waitForTimeout(0);
        await until(
          "the times have the focus",
          () =>
            page.getByLabel("Begin of row 1").evaluate((one) =>
              one === (one as Json).ownerDocument.activeElement
            ),
        );
      },
    );
    await t.step("on a phone the week is one day at a time", async () => {
      await using visit = await dashboard.visit({ by: "phone", hasTouch: true });
      await visit.open("/schedules");
      await visit.button("New schedule").tap();
      await visit.page.locator(".week.strip").waitFor();
      await visit.page.getByRole("radio", { name: "Wed", exact: true }).tap();
      for (const step of [20, 21]) await visit.page.locator(cell(2, step)).tap();
      await assertWeek(visit, "Wed 10:00-11:00");
      await visit.assertFits();
    });
    await t.step("a backup is taken, and told of before it is restored", async () => {
      await using visit = await dashboard.visit();
      const { page } = visit;
      const rule = await api.create("rules", { rule: "||kept.example^" });
      const token = await api.create("tokens", { name: "radio", role: "viewer" });
      await visit.open("/settings");
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        visit.button("Download backup").click(),
      ]);
      assert.match(download.suggestedFilename(), /^svc-.+-\d{4}-\d\d-\d\d\.json$/);
      const file = `${dashboard.service.directory}/backup.json`;
      await download.saveAs(file);
      await api.call("DELETE", `rules/${rule}`);
      await api.call("DELETE", `tokens/${token}`);
      await api.create("rules", { rule: "||added.example^" });
      const choose = visit.field("File of a backup");
      await choose.setInputFiles({
        name: "other.json",
        mimeType: "application/json",
        buffer: Buffer.from("{}"),
      });
      await visit.sees(/^That is no backup/);
      await choose.setInputFiles(file);
      await visit.sees("What would change");
      await visit.sees("||kept.example^");
      await visit.sees("without its secret: make it anew");
      await visit.sees("||added.example^");
      const rules = async () =>
        (await api.call("GET", "rules")).items.map(({ spec }: Json) => spec.rule);
      assert.ok((await rules()).includes("||added.example^")); // Nothing was done yet.
      await page.locator("#restore").getByRole("button", { name: "Restore" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
      await page.locator(".toast", { hasText: "Restored" }).waitFor();
      assert.ok((await rules()).includes("||kept.example^"));
      assert.ok(!(await rules()).includes("||added.example^"));
      await visit.field("Passphrase (optional)").fill("short");
      await visit.button("Download backup").click();
      await visit.sees(/it has 8 to 1024 characters/);
    });
    await t.step("who is asked is told with why a name is answered so", async () => {
      await using visit = await dashboard.visit({ locale: "de-DE" });
      await visit.open("/rules?test=www.news.example");
      const asked = visit.page.locator(".why p", { hasText: "Gefragt wird:" });
      await asked.waitFor();
      assert.ok((await asked.textContent())?.includes(dashboard.upstream.text));
      await visit.open("/log?outcome=blocked");
      await visit.button("Filter Gesperrt entfernen").waitFor();
    });
    await t.step("on a phone what a drawer covers is out of reach until it is closed", async () => {
      await using visit = await dashboard.visit({ by: "phone" });
      const { page } = visit;
      await dashboard.ask("127.0.0.25", "covered.example");
      await visit.open("/log");
      await visit.openRow("covered.example");
      await page.locator(".drawer .why").waitFor();
      const isWithin =
        "(one => one === document.body || one.closest('.drawer, .toasts') !== null)" +
        "(document.activeElement)";
      for (let i = 0; i < 40; i++) {
        await page.keyboard.press("Tab");
        assert.equal(await page.evaluate(isWithin), true, `after ${i + 1} times`);
      }
      assert.equal(await page.locator("[inert]").count() > 0, true);
      await page.keyboard.press("Escape");
      await page.locator(".drawer").waitFor({ state: "detached" });
      assert.equal(await page.locator("[inert]").count(), 0);
    });
    await t.step("the focus comes and goes with a drawer, not behind it", async () => {
      for (const by of ["phone", "pointer"] as const) {
        await using visit = await dashboard.visit({ by });
        const { page } = visit;
        for (const name of ["before", "after"]) {
          await dashboard.ask("127.0.0.26", `${name}.example`);
        }
        await visit.open("/log?client=127.0.0.26");
        await page.locator(".virtual-row").first().waitFor();
        // Looked at in the very turn that changes the page: a key may follow at once.
        await page.evaluate(SEE_DRAWERS);
        const drawer = (text: string) => page.locator(".drawer", { hasText: text });
        await visit.openRow("after.example");
        await drawer("after.example").waitFor();
        await drawer("after.example").locator(".drawer-close").focus();
        await page.keyboard.press("ArrowDown");
        await drawer("before.example").waitFor();
        await page.keyboard.press("Escape");
        await drawer("").waitFor({ state: "detached" });
        const open = `open: ${
          by === "phone" ? "drawer, others out of reach" : "list, all in reach"
        }`;
        const want = [open, open, "closed: list, all in reach"];
        assert.deepEqual(await page.evaluate("seenDrawers"), want, by);
      }
    });
    await t.step("what a drawer covers is out of reach, on every width", async () => {
      await using visit = await dashboard.visit();
      const { page } = visit;
      await dashboard.ask("127.0.0.27", "wide.example");
      for (const width of [639, 640, 899, 900]) {
        await page.setViewportSize({ width, height: 640 });
        await visit.open("/log?client=127.0.0.27");
        await visit.openRow("wide.example");
        await page.locator(".drawer .why").waitFor();
        const [covers, isShaded, isShut] = await page.evaluate(`[
          getComputedStyle(document.querySelector(".drawer")).position === "fixed",
          getComputedStyle(document.querySelector(".drawer-shade")).display !== "none",
          document.querySelector(".virtual").inert,
        ]`) as boolean[];
        const isSheet = width < 900;
        const want = { covers: isSheet, isShaded: isSheet, isShut: isSheet };
        assert.deepEqual({ covers, isShaded, isShut }, want, `${width} px`);
      }
    });
    await t.step(
      "what comes behind a drawer is out of reach as well, until it is closed",
      async () => {
        await using visit = await dashboard.visit({ by: "phone" });
        const { page } = visit;
        await dashboard.ask("127.0.0.28", "later.example");
        await visit.open("/log?client=127.0.0.28");
        await visit.openRow("later.example");
        await page.locator(".drawer .why").waitFor();
        // Looked at in the turn that adds it.
        await page.evaluate(`
        var reach = [];
        new MutationObserver(() => {
          const split = document.querySelector(".log-split");
          const isThere = split.previousElementSibling.matches(".error-box");
          if (isThere) reach.push(split.previousElementSibling.inert);
        }).observe(document.querySelector(".log-page"), { childList: true, subtree: true });
      `);
        await page.route(
          "**/api/v1/querylog?*",
          (route) => route.fulfill({ status: 500, json: {} }),
        );
        await page.locator(".drawer").getByRole("link", { name: "Only this name" }).click();
        const retry = page.locator(".error-box button");
        await retry.waitFor();
        const seen = await page.evaluate("reach") as boolean[];
        assert.ok(
          seen.length > 0 && seen.every((isShut) => isShut),
          `${seen}`,
        );
        await page.keyboard.press("Escape");
        await page.locator(".drawer").waitFor({ state: "detached" });
        assert.equal(await page.locator("[inert]").count(), 0);
      },
    );
    await t.step("a width that changes behind the first look at it is not missed", async () => {
      await using visit = await dashboard.visit({ by: "phone" });
      // Each is wide when it is asked first, and a phone's by the time that somebody listens.
      await visit.page.addInitScript(`{
        const asked = new Set();
        const own = globalThis.matchMedia;
        globalThis.matchMedia = (text) => {
          if (!text.includes("max-width") || asked.has(text)) return own(text);
          asked.add(text);
          return { matches: false };
        };
      }`);
      await dashboard.ask("127.0.0.29", "narrow.example");
      await visit.open("/log?client=127.0.0.29");
      await visit.page.locator('.virtual-row[style*="height: 60px"]').first().waitFor();
      await visit.openRow("narrow.example");
      await visit.page.locator(".drawer[role=dialog]").waitFor();
    });
    await t.step(
      "the focus comes and goes with a dialog, and back past one that led to it",
      async () => {
        await using visit = await dashboard.visit();
        const { page } = visit;
        await visit.open("/rules");
        await page.evaluate(SEE_DIALOGS);
        const dialog = (title: string) => page.locator("dialog", { hasText: title });
        await page.locator("textarea").fill("||half.example^");
        await page.keyboard.press("Control+k");
        await dialog("Search").waitFor();
        await page.keyboard.press("Escape");
        await dialog("").waitFor({ state: "detached" });
        await page.keyboard.press("Control+k");
        await dialog("Search").waitFor();
        await page.keyboard.type("overview");
        await page.keyboard.press("Enter"); // The search goes in the turn in which this is asked.
        await dialog("Leave without saving?").waitFor();
        await page.keyboard.press("Escape");
        await dialog("").waitFor({ state: "detached" });
        assert.deepEqual(await page.evaluate("seenDialogs"), [
          "Search: input of Search",
          "none: textarea",
          "Search: input of Search",
          "Leave without saving?: button of Leave without saving?",
          "none: textarea",
        ]);
      },
    );
    await t.step("the overview and the log take two pages of paper, dark or not", async () => {
      const names = Array.from({ length: 150 }, (_, i) => `name${i}.some.long.domain.example`);
      for (let i = 0; i < 12; i++) {
        await dashboard.ask(`127.0.0.${100 + i}`, ...names.slice(0, 30), `a${i}.${BLOCKED}`);
      }
      await dashboard.ask("127.0.0.99", ...names);
      await using visit = await dashboard.visit({ theme: "dark" });
      const spans = IS_WHOLE ? ["/?hours=1", "/?hours=168", "/?hours=720"] : [];
      for (const target of ["/", ...spans, "/log"]) {
        await visit.open(target);
        await visit.settled();
        if (target === "/log") await visit.page.locator(".virtual-row").first().waitFor();
        else await visit.sees("Top blocked");
        const pages = pagesOf(await visit.page.pdf({ format: "A4" }));
        assert.ok(pages >= 1 && pages <= 2, `${target}: ${pages} pages`);
      }
      await visit.open("/log");
      await visit.page.locator(".virtual-row").first().waitFor();
      await visit.page.emulateMedia({ media: "print" });
      await visit.page.evaluate("dispatchEvent(new Event('beforeprint'))");
      await until(
        "more than fits the screen",
        async () => await visit.page.locator(".virtual-row").count() >= 90,
      );
      await visit.page.evaluate("dispatchEvent(new Event('afterprint'))");
      await visit.open("/");
      await visit.sees("Top blocked");
      await visit.page.evaluate("dispatchEvent(new Event('beforeprint'))");
      await visit.page.locator(".chart-table tbody tr").nth(20).waitFor();
      const ink = await visit.page.locator("h1").evaluate((one) =>
        (globalThis as Json).getComputedStyle(one).color
      );
      assert.equal(ink, "rgb(22, 32, 43)", "dark on white, whatever the screen has");
    });
    await t.step("the directory is searched by words and by tags, a piece at a time", async () => {
      await using visit = await dashboard.visit({ by: "phone" });
      const { page } = visit;
      const items = Array.from({ length: 300 }, (_, i) => ({
        id: `l${i}`,
        name: `List ${i} \u202e<b>`,
        description: i === 299 ? "of scams" : "of ads",
        tags: [i % 100 === 0 ? "privacy" : "ads", "<i>"],
        url: `https://lists.example/${i}`,
      }));
      await page.route("**/api/v1/lists/directory", async (route) => {
        await route.fulfill({ json: { fetched_at: null, items } });
      });
      await visit.open("/lists?tab=directory");
      await visit.sees("50 of 300");
      assert.equal(await page.locator(".rows > li").count(), 50);
      await visit.button("More").click();
      await visit.sees("100 of 300");
      await visit.field("Tag").selectOption({ label: "privacy (3)" });
      await visit.sees("3 lists");
      assert.match(page.url(), /[?&]tag=privacy$/);
      await visit.field("Tag").selectOption({ label: "All tags" });
      await page.getByRole("searchbox", { name: "Search" }).fill("scams");
      await visit.sees("1 list");
      await visit.assertFits();
    });
    await t.step("a cluster shows its members, and what can be done from here", async () => {
      await using visit = await dashboard.visit();
      const { page } = visit;
      await inCluster(visit, { writable: false });
      await visit.open("/cluster");
      const row = (text: string) => page.locator("tr", { hasText: text });
      await row("attic").getByText("leader").waitFor();
      assert.match(await row("cellar <b>").textContent() ?? "", /Witness.*votes.*No/);
      assert.match(await row("attic").textContent() ?? "", /Yes.*0$/);
      assert.match(await row("This node").textContent() ?? "", /8$/, "entries behind");
      assert.equal(await row("shed").getByRole("button").count(), 0);
      assert.equal(await visit.button("Remove attic").isDisabled(), true);
      await visit.sees("cellar <b>: it does not answer");
      const asked: Json[] = [];
      await page.route("**/api/v1/cluster/promote", async (route) => {
        asked.push(route.request().postDataJSON());
        const error = { code: "conflict", message: "attic leads" };
        if (asked.length === 1) await route.fulfill({ status: 409, json: { error } });
        else await route.fulfill({ status: 200, json: {} });
      });
      await visit.button("Take over").click();
      const dialog = page.getByRole("dialog");
      const go = (name: string) => dialog.getByRole("button", { name });
      assert.equal(await go("Take over").isDisabled(), true, "its name is to be typed");
      const { node } = await api.call("GET", "status");
      await dialog.getByRole("textbox").fill(node);
      await go("Take over").click();
      await dialog.getByText("attic leads").waitFor();
      await dialog.getByRole("textbox").fill(node);
      await go("All the same").click();
      await visit.sees("Done");
      assert.deepEqual(asked, [{ force: false }, { force: true }]);
      // A follower without a leader reads; forms keep what is typed.
      await visit.open("/records");
      const isOff = (name: string) =>
        until(`${name} is off`, async () => await visit.button(name).isDisabled());
      await isOff("Add record");
      await visit.open("/rules");
      await page.locator("textarea").fill("||half.example^");
      await isOff("Add");
      assert.equal(await page.locator("textarea").inputValue(), "||half.example^");
      await visit.open("/leak-test");
      await visit.sees("Leak test");
    });
    await t.step("names that want to be something else stay names, in every list", async () => {
      const group = await api.create("groups", { name: HOSTILE[1] });
      for (const [i, name] of HOSTILE.entries()) {
        // What the API refuses can't be in a list.
        const add = async (collection: string, spec: unknown) => {
          const { id, error } = await api.call("POST", collection, spec);
          if (id === undefined) assert.match(error.code, /^(invalid|conflict)$/, error.message);
        };
        await add("groups", { name });
        await add("clients", { name, addresses: [`127.0.0.${50 + i}`], group });
        await add("lists", { name, url: `https://127.0.0.1:1/${i}`, enabled: false });
        const windows = [{ days: ["mon"], start: "08:00", end: "09:00" }];
        await add("schedules", { name, time_zone: "UTC", windows });
        await add("rules", { rule: "||hostile.example^", comment: name, clients: [] });
        await add("records", {
          name: `n${i}.home.arpa`,
          type: "A",
          value: "192.0.2.1",
          comment: name,
        });
        await dashboard.ask(`127.0.0.${50 + i}`, PASSED, BLOCKED);
      }
      await dashboard.ask("127.0.0.50", ...WIRE_NAMES);
      for (const by of IS_WHOLE ? ["pointer", "phone"] as const : ["phone"] as const) {
        await using visit = await dashboard.visit({ by });
        const targets = [
          ...["/", "/log", "/log?distinct=name", "/lists", "/rules", "/records", "/clients"],
          ...["/groups", `/groups/${group}?tab=clients`, "/schedules", "/audit", "/connect"],
        ];
        for (const target of targets) {
          await visit.open(target);
          await visit.settled();
          await visit.assertFits();
          assert.notEqual(await visit.page.title(), "gone", target);
          const text = await visit.page.locator("main").textContent() ?? "";
          assert.doesNotMatch(text, /[\u202a-\u202e\u2066-\u2069]/, `${target} turns text around`);
          // deno-lint-ignore no-control-regex -- these are what must not be there
          assert.doesNotMatch(text, /[\0-\x08\x0b-\x1f\x7f]/, `${target} has control characters`);
        }
        await visit.open(`/log?name=${"d".repeat(20)}`);
        await visit.openRow("d".repeat(20));
        await visit.page.locator(".drawer .facts").waitFor();
        await visit.assertFits();
      }
    });
    dashboard.service.assertCalm();
  },
});
