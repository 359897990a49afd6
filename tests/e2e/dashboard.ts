/**
 * The dashboard in a browser: a service with some history, and visits that note whatever a page must
 * not do: break its policy, ask another host, fail in its script.
 */
import assert from "node:assert/strict";
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";
import { Api } from "./api.ts";
import { Asker } from "./asker.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import {
  type ConfigText,
  OwnDirectory,
  PERMISSIONS,
  PROGRAM,
  ROOT,
  runProgram,
  Service,
  until,
} from "./harness.ts";
import { filterWithServices } from "./services.ts";

/** Playwright looks at the machine it runs on. */
export const BROWSER_PERMISSIONS = { ...PERMISSIONS, sys: true } as const;
/** The whole of the matrix, where one file a default run has a share of it. */
export const IS_WHOLE = Deno.env.get("SVC_UI_MATRIX") === "whole";
/** Where pictures go that somebody wants to look at; none are taken without. */
export const PICTURES = Deno.env.get("SVC_UI_PICTURES") ?? null;

const BROWSER_PATH = "chromium";
/** Longest wait for what a page is to show. */
const SHOWN_MS_MAX = 20_000;

export const BLOCKED = "ads.example";
export const IMPORTANT = "track.example";
export const PASSED = "www.news.example";

/** Builds the dashboard where a source is newer, as `scripts/svc run` does. */
async function freshUi(): Promise<void> {
  if (PROGRAM !== undefined) return; // The built file has it.
  const script =
    `scripts=${ROOT}scripts; . "$scripts/find_deno.sh"; . "$scripts/build_ui.sh"; fresh_ui`;
  const { code, stderr } = await runProgram("sh", "-c", script);
  assert.equal(code, 0, stderr);
}

export function path(program: string): string {
  const found = (Deno.env.get("PATH") ?? "").split(":").map((one) => `${one}/${program}`)
    .find((file) => {
      try {
        return Deno.statSync(file).isFile;
      } catch {
        return false;
      }
    });
  assert.ok(found !== undefined, `${program} is on this machine`);
  return found;
}

/** A service with a dashboard, and a browser. */
export class Dashboard implements AsyncDisposable {
  private constructor(
    readonly service: Service,
    readonly api: Api,
    readonly upstream: FakeUpstream,
    readonly browser: Browser,
    private readonly directory: OwnDirectory,
  ) {}

  /** `prepare` puts what is to be there before the service into its folder. */
  static async start(
    config: ConfigText = {},
    prepare: (directory: string) => void = () => {},
  ): Promise<Dashboard> {
    await freshUi();
    const directory = await OwnDirectory.make();
    prepare(directory.path);
    const upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
    const service = await Service.start({
      directory: directory.path,
      config: {
        ...config,
        upstream: [{ address: upstream.text }],
        filter: {
          ...await filterWithServices(directory.path),
          rules: [`||${BLOCKED}^`, `||${IMPORTANT}^$important`],
          ...config.filter,
        },
      },
    });
    const browser = await chromium.launch({
      executablePath: path(BROWSER_PATH),
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"],
    });
    return new Dashboard(service, await Api.of(service), upstream, browser, directory);
  }

  /** Where the dashboard is. */
  get origin(): string {
    return new URL(this.api.base).origin;
  }

  /** Asks for names as these addresses of loopback. */
  async ask(from: string, ...names: string[]): Promise<void> {
    using asker = await Asker.open(this.service.address, from);
    await asker.askAll(names.map((name) => ({ name })));
  }

  async visit(options: VisitOptions = {}): Promise<Visit> {
    return await Visit.begin(this, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
    await this.service[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
    await this.directory[Symbol.asyncDispose]();
  }
}

export type By = "pointer" | "keyboard" | "phone";

export interface VisitOptions extends BrowserContextOptions {
  readonly by?: By;
  readonly theme?: "light" | "dark";
  /** Setting up is not offered again. */
  readonly isSetUp?: boolean;
  /** A session's cookie. */
  readonly session?: string;
}

/** Somebody in front of the dashboard, whose presses are counted. */
export class Visit implements AsyncDisposable {
  readonly faults: string[] = [];
  clicks = 0;
  /** Requests to the API without an answer; those that last for as long as the page are none. */
  #pending = 0;

  private constructor(readonly page: Page, readonly origin: string, readonly by: By) {}

  static async begin(dashboard: Dashboard, options: VisitOptions): Promise<Visit> {
    const { by = "pointer", theme = "light", isSetUp = true, session, ...rest } = options;
    const context = await dashboard.browser.newContext({
      viewport: by === "phone" ? { width: 320, height: 640 } : { width: 1_280, height: 800 },
      colorScheme: theme,
      locale: "en-GB",
      reducedMotion: "reduce",
      ...rest,
    });
    const { origin } = dashboard;
    if (session !== undefined) {
      await context.addCookies([{ name: "svc_session", value: session, url: origin }]);
    }
    if (isSetUp) await context.addInitScript("sessionStorage.setItem('svc.setup', 'offered')");
    const page = await context.newPage();
    page.setDefaultTimeout(SHOWN_MS_MAX);
    const visit = new Visit(page, origin, by);
    page.on("pageerror", (error) => visit.faults.push(`script: ${error.message}`));
    page.on("console", (message) => {
      const text = message.text();
      if (/Content Security Policy|Trusted Type/i.test(text)) visit.faults.push(text);
    });
    const lasts = (url: string) =>
      /\/(events|querylog\/stream)\b/.test(url) || !url.includes("/api/");
    for (const event of ["requestfinished", "requestfailed"] as const) {
      page.on(event as "requestfinished", (request) => {
        if (!lasts(request.url())) visit.#pending--;
      });
    }
    page.on("request", (request) => {
      if (!lasts(request.url())) visit.#pending++;
      const url = new URL(request.url());
      const isOurs = url.origin === origin || url.protocol === "data:" ||
        url.hostname.endsWith(".leak.svc.test");
      if (!isOurs) visit.faults.push(`asked ${url.origin}`);
    });
    return visit;
  }

  async open(target: string): Promise<void> {
    await this.page.goto(this.origin + target);
    await this.page.locator("h1").first().waitFor({ state: "attached" });
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole("button", { name, exact: typeof name === "string" }).first();
  }

  link(name: string | RegExp): Locator {
    return this.page.getByRole("link", { name, exact: typeof name === "string" }).first();
  }

  field(label: string | RegExp): Locator {
    return this.page.getByLabel(label, { exact: typeof label === "string" }).first();
  }

  /** Presses it: with the pointer, or with the key that does so. */
  async press(target: Locator, key = "Enter"): Promise<void> {
    this.clicks++;
    if (this.by !== "keyboard") return await target.click();
    // What is just being drawn anew loses it once.
    await until(`the focus of ${target}`, async () => {
      await target.focus();
      return await target.evaluate((element) => element === element.ownerDocument.activeElement);
    });
    await this.page.keyboard.press(key);
  }

  /** Opens a row of the log: by a press on it, or by arrows and Enter. */
  async openRow(text: string): Promise<void> {
    const row = this.page.locator(".virtual-row", { hasText: text }).first();
    await row.waitFor();
    if (this.by !== "keyboard") return await this.press(row);
    this.clicks++;
    const index = Number(await row.getAttribute("aria-rowindex")) - 2;
    await this.page.locator(".virtual").focus();
    for (let i = 0; i < index; i++) await this.page.keyboard.press("ArrowDown");
    await this.page.keyboard.press("Enter");
  }

  /** Goes to a page by the navigation: on a phone what is not at the bottom is behind "More". */
  async goTo(name: string): Promise<void> {
    const entry = (where: string) =>
      this.page.locator(where).getByRole("link", { name, exact: true });
    if (this.by !== "phone") return await this.press(entry(".side"));
    if (await entry(".bottom").count() > 0) return await this.press(entry(".bottom"));
    await this.press(this.button("More"));
    await this.press(entry(".more"));
  }

  async sees(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).locator("visible=true").first().waitFor();
  }

  /** What the page asked for is there, and drawn. */
  async settled(): Promise<void> {
    await until("an answer to all that was asked", () => this.#pending <= 0);
    // Looked at from outside: what a page is asked to look for itself is code that its policy forbids.
    await this.page.locator("h1").first().waitFor({ state: "attached" });
    await until("no skeleton", async () => await this.page.locator(".skeletons").count() === 0);
  }

  /** Nothing is wider than the screen. */
  async assertFits(): Promise<void> {
    const beyond = await this.page.evaluate(
      "document.documentElement.scrollWidth - window.innerWidth",
    );
    assert.ok(Number(beyond) <= 0, `${this.page.url()}: ${beyond} px too wide`);
  }

  async picture(name: string): Promise<void> {
    if (PICTURES === null) return;
    await this.page.screenshot({ path: `${PICTURES}/${name}.png` });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.page.unrouteAll({ behavior: "ignoreErrors" });
    await this.page.context().close();
    // Said as well: where the visit has failed already, that is the error that is shown.
    if (this.faults.length > 0) console.log(this.faults);
    assert.deepEqual(this.faults, []);
  }
}
