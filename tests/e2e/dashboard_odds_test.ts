// Goal: the dashboard holds against what nobody plans: a browser's clock that is wrong by a day, an
// answer that comes late or never, changes made while nobody could tell of them, a session that ends
// at a bad time, addresses that lead elsewhere. Method: a real browser whose clock, storage or answers
// are spoiled, against one service; the steps behind "an admin is made" are of somebody signed in.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Page } from "playwright-core";
import { BLOCKED, BROWSER_PERMISSIONS, Dashboard, type Visit } from "./dashboard.ts";
import { hasProgram, until } from "./harness.ts";

const TV = "127.0.0.60";
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const PASSWORD = "a password to keep 1";
const NEXT_PASSWORD = "a password to keep 2";

/** Has the browser's clock be wrong by so much. */
async function skew(page: Page, byMs: number): Promise<void> {
  await page.addInitScript(`{
    const Right = Date;
    globalThis.Date = class extends Right {
      constructor(...given) {
        super(...given.length === 0 ? [Right.now() + ${byMs}] : given);
      }
      static now() {
        return Right.now() + ${byMs};
      }
    };
  }`);
}

/** Answers to a path wait from now on until they are let go. */
async function holdBack(page: Page, path: string) {
  const { promise, resolve } = Promise.withResolvers<void>();
  let asked = 0;
  await page.route(path, async (route) => {
    if (route.request().method() !== "GET") return await route.continue();
    asked++;
    const response = await route.fetch(); // What is so now, told later.
    await promise;
    await route.fulfill({ response });
  });
  return { letGo: resolve, asked: () => asked };
}

async function signIn(visit: Visit, password = PASSWORD): Promise<void> {
  await visit.field("Name").fill("ann");
  await visit.field("Password").fill(password);
  await visit.button("Sign in").click();
}

/** Where the browser is, behind its origin. */
async function isAt({ page, origin }: Visit, path: string): Promise<void> {
  await until(path, () => page.url() === origin + path).catch(() => {
    assert.equal(page.url(), origin + path);
  });
}

Deno.test({
  name: "the dashboard holds against clocks, answers and addresses that are wrong",
  ignore: !hasProgram("chromium"),
  permissions: BROWSER_PERMISSIONS,
  fn: async (t) => {
    await using dashboard = await Dashboard.start();
    const { api } = dashboard;
    await api.create("clients", { name: "TV", addresses: [TV] });
    await dashboard.ask(TV, BLOCKED, BLOCKED, "www.example");

    for (const [name, byMs] of [["fast", DAY_MS], ["slow", -DAY_MS]] as const) {
      await t.step(`a clock that is a day ${name} changes no time`, async () => {
        await using visit = await dashboard.visit();
        const { page } = visit;
        await skew(page, byMs);
        await visit.open("/");
        const now = page.locator(".blocked-now");
        await now.getByText("TV").waitFor();
        await visit.button("Pause").click();
        await visit.button("5 minutes").click();
        await page.locator(".filtering-text").filter({ hasText: /\b[45]:\d\d\b/ }).waitFor();
        await visit.button("Resume").click();
        await visit.open("/rules");
        await page.locator("textarea").fill(`||${name}.example^`);
        await visit.field("How long").selectOption("hour");
        await visit.button("Add").click();
        await visit.sees(`Added ||${name}.example^`);
        const { spec } = (await api.call("GET", "rules")).items.at(-1);
        const leftMs = Date.parse(spec.expires_at) - Date.now();
        assert.ok(leftMs > HOUR_MS - 300_000 && leftMs < HOUR_MS + 5_000, spec.expires_at);
      });
    }
    await t.step("what could not be read is never shown as empty", async () => {
      await using visit = await dashboard.visit();
      await visit.page.route(/\/api\/v1\/querylog\?/, (route) =>
        route.fulfill({
          status: 503,
          json: { error: { code: "unavailable", message: "querylog: it is away" } },
        }));
      const [{ id }] = (await api.call("GET", "clients")).items;
      for (const target of ["/", `/clients/${id}`]) {
        await visit.open(target);
        await visit.page.locator(".card").getByText("querylog: it is away").waitFor();
        await visit.page.locator(".card").getByRole("button", { name: "Retry" }).waitFor();
      }
    });
    await t.step(
      "an address that says no time shows the page, and why it shows nothing",
      async () => {
        await using visit = await dashboard.visit();
        await visit.open("/log?since=yesterday");
        await visit.page.locator(".error-box").waitFor();
        await visit.sees("yesterday");
      },
    );
    await t.step("a page that fails leaves the way to the others", async () => {
      await using visit = await dashboard.visit();
      await visit.page.route(
        "**/api/v1/rules",
        (route) => route.fulfill({ json: { items: [null] } }),
      );
      await visit.open("/rules");
      await visit.sees("This page could not be loaded.");
      assert.equal(visit.faults.splice(0).length, 1); // It is told to whoever looks.
      await visit.page.locator(".side").getByRole("link", { name: "Groups", exact: true }).click();
      await visit.sees("Default");
    });
    await t.step("what others changed while nobody told of it is there afterwards", async () => {
      await using visit = await dashboard.visit();
      let isSilent = true;
      await visit.page.route(
        "**/api/v1/events",
        (route) => isSilent ? route.abort() : route.continue(),
      );
      await visit.open("/records");
      await visit.sees("Give devices of your network names");
      await api.create("records", { name: "nas.home.arpa", type: "A", value: "192.0.2.5" });
      isSilent = false;
      await visit.page.locator("td", { hasText: "nas.home.arpa" }).waitFor();
    });
    await t.step("an answer from before a change does not take the change back", async () => {
      await api.create("records", { name: "tv.home.arpa", type: "A", value: "192.0.2.6" });
      await using visit = await dashboard.visit();
      const { page } = visit;
      await page.route("**/api/v1/events", (route) => route.abort());
      await visit.open("/records");
      const one = page.getByRole("switch", { name: "nas.home.arpa" });
      const other = page.getByRole("switch", { name: "tv.home.arpa" });
      await other.waitFor();
      const held = await holdBack(page, "**/api/v1/records");
      await one.click();
      await until("it is asked for", () => held.asked() === 1);
      await other.click();
      await visit.sees("tv.home.arpa is off");
      held.letGo();
      await until("it is asked for again", () => held.asked() > 1);
      await visit.settled();
      for (const each of [one, other]) {
        await until("off", async () => await each.getAttribute("aria-checked") === "false");
      }
    });
    await t.step("a list stays in its groups when these come late", async () => {
      const url = "https://127.0.0.1:1/late.txt";
      const list = await api.create("lists", { name: "Late", url, enabled: false });
      const kids = await api.create("groups", { name: "Kids", lists: [{ list }] });
      await using visit = await dashboard.visit();
      const held = await holdBack(visit.page, "**/api/v1/groups");
      await visit.open("/lists");
      await visit.button("Edit: Late").click();
      await visit.field("Name").fill("Later");
      held.letGo();
      await visit.page.locator("dialog").getByText("Kids").waitFor();
      await visit.button("Save").click();
      await visit.sees("Saved Later");
      await visit.settled();
      assert.deepEqual((await api.call("GET", `groups/${kids}`)).spec.lists, [{ list }]);
    });
    await t.step("no client moves from under the pointer of who reads", async () => {
      await api.create("clients", { name: "Radio", addresses: ["127.0.0.61"] });
      await using visit = await dashboard.visit();
      const { page } = visit;
      await visit.open("/clients");
      const rows = page.locator(".virtual-row");
      const first = rows.nth(0).filter({ hasText: "TV" });
      await first.locator(".k-queries", { hasText: /\d/ }).waitFor();
      await dashboard.ask("127.0.0.61", ...Array.from({ length: 40 }, (_, i) => `r${i}.example`));
      await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
      const radio = rows.nth(1).filter({ hasText: "Radio" });
      await radio.locator(".k-queries", { hasText: "40" }).waitFor();
      await page.getByRole("searchbox", { name: "Search" }).fill("127.0.0.6");
      await rows.nth(0).filter({ hasText: "Radio" }).waitFor();
    });
    await t.step("what was refused is not shown as if it was so", async () => {
      const id = "gr_0000000000000000";
      await using visit = await dashboard.visit();
      await visit.page.route(`**/api/v1/groups/${id}`, (route) =>
        route.fulfill({
          status: 503,
          json: { error: { code: "unavailable", message: "cluster: it has no leader" } },
        }));
      await visit.open(`/groups/${id}`);
      const when = visit.page.locator(".time-select").first();
      await when.selectOption("always");
      await visit.sees("cluster: it has no leader");
      await until("as it is", async () => await when.inputValue() === "off");
    });
    await t.step("what is typed in one part of the settings outlives saving another", async () => {
      await using visit = await dashboard.visit();
      const { page } = visit;
      await visit.open("/settings");
      const refused = visit.field("Not allowed, whatever stands above");
      await refused.fill("192.0.2.0/24");
      await visit.field("Kept by devices, in seconds").fill("77");
      await page.locator(".card", { hasText: "Kept by devices" }).getByRole("button", {
        name: "Save",
      }).click();
      await visit.sees("Saved Settings");
      await api.set({ list_update_interval: 7_200 });
      await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
      await until(
        "the other's",
        async () => await page.locator("input[step=any]").inputValue() === "2",
      );
      assert.equal(await refused.inputValue(), "192.0.2.0/24");
      await page.locator(".side").getByRole("link", { name: "Groups", exact: true }).click();
      await visit.sees("Leave without saving?");
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      await page.locator("#access").getByRole("button", { name: "Save" }).click();
      await until("all of it", async () => {
        const { block_ttl, list_update_interval, access } = await api.call("GET", "settings");
        const all = [block_ttl, list_update_interval, access.disallowed.join()];
        return all.join() === "77,7200,192.0.2.0/24";
      });
    });
    await t.step("a rule of many that is none is told by its line", async () => {
      await using visit = await dashboard.visit();
      await visit.open("/rules");
      await visit.page.locator("textarea").fill("||a.example^\r\n\r\n||b.example^\r\n/(/\r\n");
      await visit.button("Add").click();
      await visit.sees(/^Line 4, \/\(\/: /);
    });
    await t.step("a file that is too large for a backup is told so", async () => {
      await using visit = await dashboard.visit();
      // Said to be so large: to hand so much to the browser takes longer than all that is tested.
      await visit.page.addInitScript(
        "Object.defineProperty(File.prototype, 'size', { value: (32 << 20) + 1 })",
      );
      await visit.open("/settings");
      const buffer = Buffer.from("{}");
      await visit.page.locator("#restore input[type=file]")
        .setInputFiles({ name: "all.json", mimeType: "application/json", buffer });
      await visit.sees("The file is larger than 32 MiB");
    });
    await t.step("a browser that keeps nothing shows the page all the same", async () => {
      await using visit = await dashboard.visit({ isSetUp: false });
      await visit.page.addInitScript(`for (const name of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(globalThis, name, {
          get() { throw new DOMException("denied", "SecurityError"); },
        });
      }`);
      await visit.open("/");
      await visit.sees("Make an admin");
      await visit.link("Go on without").click();
      await visit.sees("Blocked just now");
    });

    await t.step("an admin is made", async () => {
      await api.call("POST", "users", { name: "ann", role: "admin", password: PASSWORD });
      assert.equal((await api.call("GET", "users")).status, 401);
    });
    await using visit = await dashboard.visit();
    const { page } = visit;
    await t.step("signing in leads to where somebody was going, and never elsewhere", async () => {
      await visit.open("/?hours=720");
      await visit.sees("Sign in");
      await signIn(visit);
      await isAt(visit, "/?hours=720");
      for (
        const next of ["//evil.example", "/\\evil.example", "/\t/evil.example", "javascript:1"]
      ) {
        await visit.open(`/sign-in?next=${encodeURIComponent(next)}`);
        await isAt(visit, "/");
      }
    });
    await t.step("who signs in again at leisure gets what was asked for before", async () => {
      // Waits for answers end when the test says so.
      await page.addInitScript(`{
        globalThis.waits = [];
        AbortSignal.timeout = () => {
          const wait = new AbortController();
          waits.push(wait);
          return wait.signal;
        };
      }`);
      await visit.open("/rules");
      await page.context().clearCookies();
      await page.locator(".side").getByRole("link", { name: "Audit", exact: true }).click();
      await visit.sees("Your session has ended.");
      await page.evaluate(
        `waits.forEach((wait) => wait.abort(new DOMException("", "TimeoutError")))`,
      );
      const dialog = page.getByRole("dialog", { name: "Sign in again" });
      await dialog.getByLabel("Name").fill("ann");
      await dialog.getByLabel("Password").fill(PASSWORD);
      await dialog.getByRole("button", { name: "Sign in" }).click();
      await page.locator(".audit-row").first().waitFor();
    });
    await t.step("a new password is not what somebody has left unsaved", async () => {
      await visit.open("/account");
      await visit.field("Your password").fill(PASSWORD);
      await visit.field("New password").fill(NEXT_PASSWORD);
      await visit.button("Set password").click();
      await visit.button("Sign in").waitFor();
      assert.equal(await page.getByRole("dialog").count(), 0);
    });
    await t.step("recovery codes are not left by mistake, for they are shown once", async () => {
      await signIn(visit, NEXT_PASSWORD);
      await visit.sees("Your password");
      await page.route(
        "**/api/v1/auth/otp",
        (route) => route.fulfill({ json: { secret: "JBSWY3DP", uri: "otpauth://totp/svc:ann" } }),
      );
      await page.route(
        "**/api/v1/auth/otp/confirm",
        (route) => route.fulfill({ json: { recovery_codes: ["code-one", "code-two"] } }),
      );
      await visit.button("Add a second factor").click();
      await visit.field("Code of your authenticator").fill("123456");
      await visit.button("Confirm").click();
      await visit.sees("code-two");
      await page.context().clearCookies(); // It ends all sessions.
      await page.locator(".side").getByRole("link", { name: "Audit", exact: true }).click();
      await visit.sees("Leave without saving?");
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      await visit.sees("code-two");
      await page.locator(".side").getByRole("link", { name: "Audit", exact: true }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Leave" }).click();
      await visit.sees("Your session has ended.");
      await page.unrouteAll();
      await visit.open("/sign-in?next=/account");
    });
    await t.step("what a link fetches, who came in by a token gets as well", async () => {
      await signIn(visit, NEXT_PASSWORD);
      await visit.sees("Your password");
      const data = { name: "hand", role: "viewer" };
      const made = await page.request.post(`${api.base}/tokens`, { data });
      const { id, token } = await made.json();
      await using other = await dashboard.visit();
      await other.open("/sign-in");
      await other.button("With the admin token").click();
      await other.field("Admin token").fill(token);
      await other.button("Sign in").click();
      await other.sees("Blocked just now");
      await other.page.locator(".side").getByRole("link", { name: "Log", exact: true }).click();
      await other.page.locator(".virtual-row").first().waitFor(); // Statistics have an export, too.
      await other.button("Export").click();
      const [file] = await Promise.all([
        other.page.waitForEvent("download"),
        other.link("CSV").click(),
      ]);
      assert.equal(file.suggestedFilename(), "querylog.csv");
      assert.match(await Deno.readTextFile(await file.path()), new RegExp(BLOCKED));
      await page.request.delete(`${api.base}/tokens/${id}`);
      await other.sees("Your session has ended.");
      const dialog = other.page.getByRole("dialog", { name: "Sign in again" });
      await dialog.getByLabel("Name").fill("ann");
      await dialog.getByLabel("Password").fill(NEXT_PASSWORD);
      await dialog.getByRole("button", { name: "Sign in" }).click();
      await dialog.waitFor({ state: "detached" });
      await other.page.locator(".virtual-row").first().waitFor();
      await other.open("/account");
      await other.sees("Your password");
    });
    dashboard.service.assertCalm();
  },
});
