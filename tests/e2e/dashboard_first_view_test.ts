// Goal: the first view is quick wherever the network and the processor are slow: the shell is painted
// from the page itself, data and files come beside each other, and neither twice. Method: a real
// browser whose scripts are held back, and the requests that it makes, counted.

import assert from "node:assert/strict";
import type { Route } from "playwright-core";
import { buildUi } from "../../scripts/build_ui.ts";
import { BROWSER_PERMISSIONS, Dashboard, type Visit } from "./dashboard.ts";
import { hasProgram, until } from "./harness.ts";

const KIB = 1_024;
/** Budgets of the first view, gzipped: all but the words of its language, and those. */
const FIRST_VIEW_KIB_MAX = 75;
const LOCALE_KIB_MAX = 12;
/** Scripts, styles and words that the overview is made of, before its chart. */
const FILES_MAX = 5;
const PAINTED = `performance.getEntriesByName("first-contentful-paint").length > 0`;

/** Keeps scripts from the page until they are let go. */
async function holdScripts(visit: Visit): Promise<() => Promise<void>> {
  const held: Route[] = [];
  let isHeld = true;
  await visit.page.route("**/assets/*.js", async (route) => {
    if (isHeld) held.push(route);
    else await route.continue();
  });
  return async () => {
    isHeld = false;
    await Promise.all(held.map((route) => route.continue()));
  };
}

/** The paths that are asked for from now on. */
function notePaths(visit: Visit): string[] {
  const paths: string[] = [];
  visit.page.on("request", (request) => paths.push(new URL(request.url()).pathname));
  return paths;
}

Deno.test({
  name: "the first view is painted before its scripts and loads nothing twice",
  ignore: !hasProgram("chromium"),
  permissions: BROWSER_PERMISSIONS,
  fn: async (t) => {
    await using dashboard = await Dashboard.start();
    await dashboard.ask("127.0.0.9", "www.first.example");
    await t.step(
      "the shell is painted, and data asked for, while scripts are awaited",
      async () => {
        await using visit = await dashboard.visit({ theme: "light" });
        await visit.page.addInitScript(`localStorage.setItem("svc.theme", "dark")`);
        const letGo = await holdScripts(visit);
        const paths = notePaths(visit);
        await visit.page.goto(dashboard.origin, { waitUntil: "commit" });
        await visit.page.locator(".waiting .brand").waitFor();
        // From outside: its policy keeps the page from running code that it is sent.
        await until("the first paint", async () => await visit.page.evaluate(PAINTED) === true);
        assert.equal(await visit.page.locator("html").getAttribute("data-theme"), "dark");
        await until("the first data", () => paths.includes("/api/v1/stats"));
        for (const path of ["/api/v1/auth/me", "/api/v1/status"]) assert.ok(paths.includes(path));
        await letGo();
        await visit.page.locator(".tile-value").first().waitFor();
        assert.equal(await visit.page.locator(".waiting").count(), 0);
      },
    );
    await t.step("each file and each answer is asked for once", async () => {
      await using visit = await dashboard.visit();
      const paths = notePaths(visit);
      await visit.open("/");
      await visit.page.locator(".plot canvas").waitFor();
      await visit.settled();
      const files = paths.filter((path) => /^\/assets\/.*\.(js|css)$/.test(path));
      assert.deepEqual(files, [...new Set(files)]);
      const beforeChart = files.filter((path) => !path.includes("uPlot"));
      assert.ok(beforeChart.length <= FILES_MAX, beforeChart.join(" "));
      for (const path of ["/api/v1/auth/me", "/api/v1/stats"]) {
        assert.equal(paths.filter((one) => one === path).length, 1, path);
      }
    });
    await t.step(
      "a page of its own is asked for with the shell, in the reader's words",
      async () => {
        await using visit = await dashboard.visit({ locale: "de-DE" });
        const letGo = await holdScripts(visit);
        const paths = notePaths(visit);
        await visit.page.goto(`${dashboard.origin}/clients/cl_0000000000000000?hours=1`, {
          waitUntil: "commit",
        });
        const has = (name: string) => paths.some((path) => path.startsWith(`/assets/${name}-`));
        await until("what the page is made of", () => has("client") && has("de"));
        assert.ok(!has("en"));
        const named = await visit.page.evaluate(
          `Array.from(document.querySelectorAll("link[rel=modulepreload], script[src]"),
            (one) => new URL(one.href ?? one.src).pathname)`,
        ) as string[];
        await letGo();
        await visit.page.locator("h1").waitFor({ state: "attached" });
        assert.deepEqual(paths.filter((path) => path.endsWith(".js") && !named.includes(path)), []);
      },
    );
    await t.step("a page without navigation shows none before its words", async () => {
      await using visit = await dashboard.visit();
      const letGo = await holdScripts(visit);
      const paths = notePaths(visit);
      await visit.page.goto(`${dashboard.origin}/reset?token=t`, { waitUntil: "commit" });
      await visit.page.locator(".waiting").waitFor({ state: "attached" });
      assert.equal(await visit.page.locator(".waiting .brand").isVisible(), false);
      await letGo();
      await visit.sees("Set a new password");
      assert.ok(!paths.includes("/api/v1/stats"));
    });
    dashboard.service.assertCalm();
  },
});

Deno.test({
  name: "the first view and its words stay within what they may weigh",
  permissions: { read: true, run: true, env: true },
  fn: async () => {
    const { files, firstView, locale } = await buildUi();
    const kib = (paths: readonly string[]) =>
      files.filter(({ path }) => paths.includes(path))
        .reduce((sum, { gzip }) => sum + gzip.length, 0) / KIB;
    for (const path of firstView) assert.ok(files.some((file) => file.path === path), path);
    const weight = kib(firstView) - kib(locale);
    assert.ok(weight <= FIRST_VIEW_KIB_MAX, `${weight.toFixed(1)} KiB`);
    assert.ok(kib(locale) <= LOCALE_KIB_MAX, `${kib(locale).toFixed(1)} KiB`);
  },
});
