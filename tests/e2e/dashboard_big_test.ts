// Goal: a full house can be looked at: with thousands of clients, hundreds of groups, many rules and a
// log full of entries each page stands, finds and scrolls, draws no more than what is looked at, and
// holds on to little. Method: the log's file is made before the service starts, clients come by a
// restored backup. SVC_UI_BIG=whole has 10,000 clients, 1,000 groups, 20,000 rules, a million entries.

import assert from "node:assert/strict";
import { hasProgram, until } from "./harness.ts";
import { BROWSER_PERMISSIONS, Dashboard, type Visit } from "./dashboard.ts";
import { fillLog } from "./full_log.ts";
import { addressOf, fillStore } from "./full_store.ts";

const SIZE = Deno.env.get("SVC_UI_BIG") === "whole"
  ? { clients: 10_000, groups: 1_000, rules: 20_000, entries: 1_000_000 }
  : { clients: 2_000, groups: 200, rules: 2_000, entries: 20_000 };
/** Of a page, however much there is to show. */
const NODES_MAX = 5_000;
const HEAP_BYTES_MAX = 48 * 1024 * 1024;

/** The page is small, whatever is behind it. */
async function assertSmall(visit: Visit, what: string): Promise<void> {
  const nodes = Number(await visit.page.evaluate("document.querySelectorAll('*').length"));
  assert.ok(nodes <= NODES_MAX, `${what}: ${nodes} elements`);
  const session = await visit.page.context().newCDPSession(visit.page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  assert.ok(usedSize <= HEAP_BYTES_MAX, `${what}: ${usedSize} bytes of heap`);
}

Deno.test({
  name: "every page of the dashboard is of use in a full house",
  ignore: !hasProgram("chromium"),
  permissions: BROWSER_PERMISSIONS,
  fn: async (t) => {
    await using dashboard = await Dashboard.start(
      { store: { path: "store" }, querylog: { max_entries: 1_500_000 } },
      (directory) => fillLog(`${directory}/store/querylog`, SIZE.entries, SIZE.clients, addressOf),
    );
    await fillStore(dashboard.api, SIZE);
    await using visit = await dashboard.visit();
    const { page } = visit;
    const rows = page.locator(".virtual-row");
    await t.step("the overview counts all of the day", async () => {
      await visit.open("/");
      await visit.settled();
      const { total } = await dashboard.api.call("GET", "stats?hours=24&step=10m");
      assert.ok(total >= 0.95 * SIZE.entries, `${total} queries`);
      await page.locator(".tile-value").first().waitFor();
      await visit.sees("Top clients");
      await assertSmall(visit, "overview");
    });
    await t.step(
      "the log scrolls by the nodes that it has, and nothing but its rows does",
      async () => {
        await visit.open("/log");
        await rows.first().waitFor();
        await page.evaluate(`kept = new Set(document.querySelectorAll(".virtual-row"))`);
        await page.locator(".virtual").focus();
        for (let i = 0; i < 60; i++) await page.keyboard.press("ArrowDown");
        await page.locator("#row-60[aria-selected=true]").waitFor();
        const told = await page.evaluate(`({
        others: [...document.querySelectorAll(".virtual-row")].filter((row) => !kept.has(row)).length,
        // Each would be a layer of paint, and have its row painted anew with every scroll.
        clipped: [...document.querySelectorAll(".virtual-row *")]
          .filter((one) => one.tagName === "svg" || getComputedStyle(one).overflow !== "visible").length,
        beyond: document.documentElement.scrollHeight - innerHeight,
      })`);
        assert.deepEqual(told, { others: 0, clipped: 0, beyond: 0 });
      },
    );
    await t.step("the log scrolls far, finds, and lets go of what it held", async () => {
      await visit.open("/log");
      await rows.first().waitFor();
      await page.locator(".virtual").focus();
      await until("ten pages of rows", async () => {
        await page.keyboard.press("End");
        return Number(await rows.last().getAttribute("aria-rowindex")) > 2_000;
      });
      await assertSmall(visit, "log, scrolled");
      await page.getByRole("searchbox", { name: /^Name contains/ }).fill("host7.site");
      await until("only these", async () => {
        const names = await page.locator(".virtual-row .c-name").allTextContents();
        return names.length > 0 && names.every((name) => name.includes("host7.site"));
      });
      await visit.open("/log?distinct=name");
      await page.locator(".table tbody tr").first().waitFor();
      await assertSmall(visit, "log by name");
    });
    await t.step("clients are found among all, and one's page stands", async () => {
      let asked: readonly string[] = [];
      page.on("request", (request) => {
        const { pathname, searchParams } = new URL(request.url());
        if (!pathname.endsWith("/clients/series")) return;
        asked = searchParams.get("clients")?.split(",") ?? [];
        assert.ok(asked.length <= 100, `runs of ${asked.length} clients`);
      });
      const drawn = async () =>
        await page.locator(".virtual-row .k-name a").evaluateAll((links) =>
          links.map((link) => link.getAttribute("href")!.slice("/clients/".length))
        );
      await visit.open("/clients");
      await rows.first().waitFor();
      const first = await drawn();
      await until("runs of rows in sight", () => asked.length > 0);
      await page.locator(".virtual").focus();
      await page.keyboard.press("PageDown");
      await page.keyboard.press("PageDown");
      await page.keyboard.press("PageDown");
      await until("runs of those in sight now", async () => {
        const ids = await drawn();
        return ids[0] !== first[0] && asked.length > 0 && asked.every((id) => ids.includes(id));
      });
      await page.getByText(new Intl.NumberFormat("en").format(SIZE.clients).replace(",", ""))
        .first().waitFor();
      await assertSmall(visit, "clients");
      const options = page.locator(".virtual-row option");
      assert.equal(await options.count(), await rows.count(), "a group a row, until one chooses");
      const last = `Device ${SIZE.clients - 1}`;
      await page.getByRole("searchbox", { name: "Search" }).fill(last);
      await until("one", async () => await rows.count() === 1);
      const group = rows.getByRole("combobox", { name: `Group of ${last}` });
      await group.focus();
      await until("all groups", async () => await options.count() === SIZE.groups + 1);
      await group.selectOption({ label: "Group 7" });
      await visit.sees(`${last} is now in Group 7`);
      await rows.getByRole("link", { name: last }).click();
      await visit.sees(/^Last 24 hours/);
      await assertSmall(visit, "client");
      await visit.open("/clients?tab=new");
      await visit.settled();
      await assertSmall(visit, "new clients");
    });
    await t.step("groups, rules and all others stay small", async () => {
      for (
        const target of [
          ...["/groups", `/groups/gr_0000000000000000?tab=clients`, "/rules", "/lists"],
          ...["/lists?tab=recommended", "/schedules", "/records", "/audit", "/settings"],
        ]
      ) {
        await visit.open(target);
        await visit.settled();
        await page.locator("main h1").waitFor({ state: "attached" });
        await assertSmall(visit, target);
        await visit.assertFits();
      }
      await visit.open("/rules");
      await page.locator(".table tbody tr").nth(99).waitFor();
      await visit.button("More").click();
      await page.locator(".table tbody tr").nth(199).waitFor();
      await page.getByRole("searchbox", { name: "Search" }).fill(`host${SIZE.rules - 1}.`);
      await until("one", async () => await page.locator(".table tbody tr").count() === 1);
    });
    await t.step("the search offers few of many", async () => {
      await page.keyboard.press("Escape");
      await page.locator("main h1").focus();
      await page.keyboard.press("Control+k");
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("combobox").fill("Device 1");
      await until("nine", async () => await dialog.getByRole("option").count() === 9);
    });
    dashboard.service.assertCalm();
  },
});
