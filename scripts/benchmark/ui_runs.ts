/**
 * The dashboard in Chromium on a slow machine: a processor four times slower, 10 Mbit/s, 40 ms. What
 * the first view weighs and when it is there, how soon a key shows while the log runs, and, at speed,
 * what an hour of the running log leaves behind and how soon a full house shows what is looked for.
 */
import type { Page } from "playwright-core";
import { Asker } from "../../tests/e2e/asker.ts";
import { Dashboard } from "../../tests/e2e/dashboard.ts";
import { fillLog } from "../../tests/e2e/full_log.ts";
import { addressOf, fillStore } from "../../tests/e2e/full_store.ts";
import { buildUi } from "../build_ui.ts";

const SLOWER = 4;
const NETWORK = {
  offline: false,
  latency: 40,
  downloadThroughput: 1_250_000,
  uploadThroughput: 1_250_000,
};
const LIVE_PER_SECOND = 500;
const LIVE_SECONDS = 15;
/** As many as an hour brings to a busy household, in two halves. */
const HOUR_ENTRIES = 40_000;
const FULL = { clients: 10_000, groups: 1_000, rules: 0, entries: 1_000_000 };
/** Of names that many entries have, and few; a dot at the end would be left out. */
const SEARCHES = ["host7.site", "site7.exam", "host1234", "st4567", "host9.site1"];
/** What takes longer is not waited for. */
const TIMED_MS_MAX = 20_000;
const KIB = 1_024;

export interface UiResults {
  readonly firstViewKib: number;
  readonly scriptsKib: number;
  readonly localeKib: number;
  readonly firstPaintMs: number;
  readonly usableMs: number;
  readonly inputP95Ms: number;
  /** The same where nothing comes: what the browser and the machine take by themselves. */
  readonly quietP95Ms: number;
  readonly heapGrownMib: number;
  readonly nodes: number;
  /** The slowest of some searches in a full log, from the last key to its rows. */
  readonly filterMs: number;
  /** Until the page of thousands of clients shows the first of them. */
  readonly clientsMs: number;
}

/** Asks so many questions, evenly over the time. */
async function load(asker: Asker, count: number, perSecond: number): Promise<void> {
  const each = Math.max(1, Math.round(perSecond / 10));
  for (let sent = 0; sent < count; sent += each) {
    const next = new Promise((resolve) => setTimeout(resolve, 100));
    await asker.askAll(
      Array.from({ length: each }, (_, i) => ({ name: `n${(sent + i) % 997}.example` })),
    );
    await next;
  }
}

/** Goes down the list and a little up again; the 95th percentile of how soon keys show. */
async function keysP95(page: Page): Promise<number> {
  await page.evaluate("inputs = []");
  let pressed = 0;
  for (const end = performance.now() + LIVE_SECONDS * 1_000; performance.now() < end; pressed++) {
    await page.keyboard.press(pressed % 8 < 6 ? "ArrowDown" : "ArrowUp");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  // What took less than the least that is told took no time to speak of.
  const told = await page.evaluate("inputs") as number[];
  const durations = [...told, ...Array(Math.max(0, pressed - told.length)).fill(0)]
    .sort((a, b) => a - b);
  return durations[Math.floor(durations.length * 0.95)] ?? NaN;
}

/** Milliseconds from a deed in the page until what it leads to is there, looked at each frame. */
async function timed(page: Page, deed: string, isThere: string): Promise<number> {
  return Number(
    await page.evaluate(`new Promise((resolve) => {
      const began = performance.now();
      const look = () => requestAnimationFrame(() => {
        const ms = performance.now() - began;
        if (${isThere} || ms > ${TIMED_MS_MAX}) resolve(ms);
        else look();
      });
      ${deed};
      look();
    })`),
  );
}

async function measureFull(): Promise<Pick<UiResults, "filterMs" | "clientsMs">> {
  await using dashboard = await Dashboard.start(
    { store: { path: "store" }, querylog: { max_entries: 1.5 * FULL.entries } },
    (directory) => fillLog(`${directory}/store/querylog`, FULL.entries, FULL.clients, addressOf),
  );
  await fillStore(dashboard.api, FULL);
  await using visit = await dashboard.visit();
  const { page } = visit;
  await visit.open("/log");
  await page.locator(".virtual-row").first().waitFor();
  let filterMs = 0;
  for (const text of SEARCHES) {
    const ms = await timed(
      page,
      `const input = document.querySelector(".log-filters input[type=search]");
       input.value = "${text}";
       input.dispatchEvent(new Event("input", { bubbles: true }))`,
      `(names => names.length > 0 && names.every((name) => name.textContent.includes("${text}")))(
        [...document.querySelectorAll(".virtual-row .c-name")])`,
    );
    filterMs = Math.max(filterMs, ms);
  }
  await visit.settled();
  const clientsMs = await timed(
    page,
    `document.querySelector('.side a[href="/clients"]').click()`,
    `document.querySelector('.virtual-row a[href^="/clients/"]') !== null`,
  );
  return { filterMs, clientsMs };
}

export async function measureUi(progress: (text: string) => void): Promise<UiResults> {
  const built = await buildUi();
  const kib = (paths: readonly string[]) =>
    built.files.filter(({ path }) => paths.includes(path))
      .reduce((sum, { gzip }) => sum + gzip.length, 0) / KIB;
  const scripts = built.files.map(({ path }) => path).filter((path) => path.endsWith(".js"));
  await using dashboard = await Dashboard.start();
  using asker = await Asker.open(dashboard.service.address, "127.0.0.9");
  await load(asker, 500, 5_000);
  await using visit = await dashboard.visit();
  const { page } = visit;
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  await cdp.send("Network.emulateNetworkConditions", NETWORK);
  await cdp.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  progress("first view");
  await page.goto(dashboard.origin);
  await page.locator(".tile-value").first().waitFor();
  const [firstPaintMs, usableMs] = await page.evaluate(
    `[performance.getEntriesByName("first-contentful-paint")[0].startTime, performance.now()]`,
  ) as [number, number];
  progress("keys while the log runs");
  await page.goto(`${dashboard.origin}/log?live=1`);
  await page.locator(".virtual-row").first().waitFor();
  await page.evaluate(`(() => {
    window.inputs = [];
    new PerformanceObserver((list) => {
      for (const { name, duration } of list.getEntries()) if (name === "keydown") inputs.push(duration);
    }).observe({ type: "event", durationThreshold: 16 });
  })()`);
  await page.locator(".virtual").focus();
  const feeding = load(asker, LIVE_PER_SECOND * LIVE_SECONDS, LIVE_PER_SECOND);
  const inputP95Ms = await keysP95(page);
  await feeding;
  const quietP95Ms = await keysP95(page);
  await cdp.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  progress("an hour of the running log");
  const heap = async () => {
    await cdp.send("HeapProfiler.collectGarbage");
    const { metrics } = await cdp.send("Performance.getMetrics");
    const of = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? NaN;
    return { mib: of("JSHeapUsedSize") / KIB / KIB, nodes: of("Nodes") };
  };
  await cdp.send("Performance.enable");
  await page.locator(".virtual").evaluate("(element) => element.scrollTo(0, 0)");
  await load(asker, HOUR_ENTRIES / 2, 4_000);
  const before = await heap();
  await load(asker, HOUR_ENTRIES / 2, 4_000);
  const after = await heap();
  progress("a full house");
  const full = await measureFull();
  return {
    ...full,
    firstViewKib: kib(built.firstView) - kib(built.locale),
    scriptsKib: kib(scripts),
    localeKib: kib(built.locale),
    firstPaintMs,
    usableMs,
    inputP95Ms,
    quietP95Ms,
    heapGrownMib: after.mib - before.mib,
    nodes: after.nodes,
  };
}
