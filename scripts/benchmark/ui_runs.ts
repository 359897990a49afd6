/**
 * The dashboard in Chromium on a slow machine: a processor four times slower, 10 Mbit/s, 40 ms. What
 * the first view weighs and when it is there, how soon a key shows while the log runs, and what an
 * hour of the running log leaves behind, at speed.
 */
import type { Page } from "playwright-core";
import { Asker } from "../../tests/e2e/asker.ts";
import { Dashboard } from "../../tests/e2e/dashboard.ts";
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
  return {
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
