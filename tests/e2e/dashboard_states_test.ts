// Goal: nobody loses what they typed, and everybody is told what is so: a new user comes from nothing
// to a first query, a session ends in the middle of a form, the API goes and comes back, two people
// change one thing. Method: a real browser against a service that is stopped, started and changed.

import assert from "node:assert/strict";
import { BLOCKED, BROWSER_PERMISSIONS, Dashboard, type Visit } from "./dashboard.ts";
import { hasProgram, until } from "./harness.ts";

const PASSWORD = "a password to keep 1";
const WINDOW = { days: ["mon"], start: "08:00", end: "13:00" };

/** The session that a visit has, for another browser. */
async function sessionOf({ page }: Visit): Promise<string> {
  return (await page.context().cookies()).find(({ name }) => name === "svc_session")!.value;
}

Deno.test({
  name: "the dashboard leads from nothing to a first query, and through what can go wrong",
  ignore: !hasProgram("chromium"),
  permissions: BROWSER_PERMISSIONS,
  fn: async (t) => {
    await using dashboard = await Dashboard.start();
    await using visit = await dashboard.visit({ isSetUp: false });
    const { page } = visit;
    await t.step("a fresh service offers to set up, down to the first query", async () => {
      await visit.open("/");
      await visit.sees("Make an admin");
      await visit.field("Name").fill("ann");
      await visit.field("Password").fill("short");
      await visit.button("Make admin and go on").click();
      await page.locator(".field.bad").waitFor(); // Told at its field.
      await visit.field("Password").fill(PASSWORD);
      await visit.button("Make admin and go on").click();
      await visit.sees("Choose what is blocked");
      await visit.button("Skip").click();
      await visit.sees("Who answers the rest");
      await visit.button("Next").click();
      await visit.sees("Point devices here");
      await visit.button("Next").click();
      await visit.sees("Waiting for a first query");
      await dashboard.ask("127.0.0.23", "first.example");
      await visit.sees("It works:");
      await visit.sees("first.example");
      await visit.button("To the overview").click();
      await visit.sees("Blocked just now");
    });
    await t.step("a reset link takes its token out of the address bar", async () => {
      await using other = await dashboard.visit();
      await other.open("/reset?token=secret-of-a-link");
      await other.sees("Set a new password");
      await until("it is out", () => new URL(other.page.url()).search === "");
      await other.field("New password").fill(PASSWORD);
      await other.button("Set password").click();
      await other.page.getByRole("alert").waitFor();
    });
    await t.step("a session ends in the middle of a form, and nothing is lost", async () => {
      await visit.open("/records");
      await visit.button("Add record").click();
      await visit.field("Name").fill("nas.home.arpa");
      await visit.field("Value").fill("192.168.1.5");
      await page.context().clearCookies();
      await visit.button("Save").click();
      await visit.sees("Sign in again");
      const dialog = page.getByRole("dialog", { name: "Sign in again" });
      await dialog.getByLabel("Name").fill("ann");
      await dialog.getByLabel("Password").fill(PASSWORD);
      await dialog.getByRole("button", { name: "Sign in" }).click();
      await visit.sees("Added nas.home.arpa"); // What was being saved is saved.
    });
    await t.step(
      "two browsers change one thing: the second is asked whose it shall be",
      async () => {
        const edit = visit.button("Edit: nas.home.arpa");
        await edit.click();
        await visit.field("Comment (optional)").fill("mine");
        const changed = await page.evaluate(`(async () => {
        const { items: [{ id, spec }] } = await (await fetch("/api/v1/records")).json();
        const body = JSON.stringify({ ...spec, comment: "theirs" });
        const headers = { "content-type": "application/json" };
        return (await fetch("/api/v1/records/" + id, { method: "PUT", headers, body })).status;
      })()`);
        assert.equal(changed, 200);
        await visit.button("Save").click();
        await visit.sees("Somebody else changed this");
        await visit.button("Keep mine").click();
        await visit.button("Save").click();
        await visit.sees("Saved nas.home.arpa");
        await page.locator("td", { hasText: "mine" }).waitFor();
      },
    );
    await t.step(
      "a second browser is offered theirs, and its switch keeps what they did",
      async () => {
        await using other = await dashboard.visit({ session: await sessionOf(visit) });
        // Nobody tells it of changes.
        await other.page.route("**/api/v1/events", (route) => route.abort());
        await other.open("/records");
        await other.button("Edit: nas.home.arpa").click();
        await other.field("Comment (optional)").fill("the second one's");
        await visit.button("Edit: nas.home.arpa").click();
        await visit.field("Comment (optional)").fill("of the first");
        await visit.button("Save").click();
        await page.locator("td", { hasText: "of the first" }).waitFor();
        await other.button("Save").click();
        await other.sees("Somebody else changed this");
        await other.button("Take theirs").click();
        await until(
          "theirs",
          async () => await other.field("Comment (optional)").inputValue() === "of the first",
        );
        await other.button("Cancel").click();
        await visit.button("Edit: nas.home.arpa").click();
        await visit.field("Comment (optional)").fill("of the first again");
        await visit.button("Save").click();
        await page.locator("td", { hasText: "of the first again" }).waitFor();
        await other.page.getByRole("switch", { name: "nas.home.arpa" }).click();
        await other.sees("nas.home.arpa is off");
        await other.page.locator("td", { hasText: "of the first again" }).waitFor();
      },
    );
    await t.step("what is used can't be removed, and by whom leads there", async () => {
      const body = {
        schedules: { name: "School", time_zone: "UTC", windows: [WINDOW] },
        groups: { name: "Kids", blocked_services: [] as unknown[] },
      };
      const post = async (path: string, data: unknown) =>
        (await (await page.request.post(`${dashboard.api.base}/${path}`, { data })).json()).id;
      const schedule = await post("schedules", body.schedules);
      body.groups.blocked_services.push({ service: "youtube", schedule });
      const group = await post("groups", body.groups);
      await visit.open("/schedules");
      await visit.button("Remove: School").click();
      const link = page.locator(".toast.danger").getByRole("link", { name: "Kids" });
      assert.equal(await link.getAttribute("href"), `/groups/${group}`);
      await page.getByRole("heading", { name: "School" }).waitFor();
    });
    await t.step("what is removed comes back by Undo", async () => {
      await visit.open("/records");
      await visit.button("Remove: nas.home.arpa").click();
      await visit.sees("Give devices of your network names");
      await page.locator(".toast", { hasText: "Removed" }).getByRole("button", { name: "Undo" })
        .click();
      await page.locator("td", { hasText: "nas.home.arpa" }).waitFor();
    });
    await t.step("what is wrong is told once, at its field", async () => {
      await visit.open("/clients");
      await visit.button("Add device").click();
      await visit.button("Save").click();
      const dialog = page.getByRole("dialog", { name: "Add device" });
      await dialog.locator(".field.bad").first().waitFor();
      assert.equal(await dialog.locator(".problem[role=alert]").count(), 0);
      await dialog.getByRole("button", { name: "Cancel" }).click();
    });
    await t.step("who closes a menu or what it led to is back at its button", async () => {
      await visit.open("/users");
      const more = visit.button("More: ann");
      await more.focus();
      await page.keyboard.press("Enter");
      await visit.button("Make a reset link").focus();
      await page.keyboard.press("Enter");
      await visit.sees(/^Works once, until /);
      await page.keyboard.press("Escape");
      await until(
        "the button has the focus",
        () => more.evaluate((one) => one === one.ownerDocument.activeElement),
      );
    });
    await t.step(
      "what is typed in one part of the settings outlives the saving of another",
      async () => {
        await visit.open("/settings");
        const allowed = visit.field("Allowed");
        const typed = `${await allowed.inputValue()}\n192.0.2.0/24`;
        await allowed.fill(typed);
        await visit.field("Kept by devices, in seconds").fill("17");
        await page.locator(".card", { hasText: "Blocked names" }).getByRole("button", {
          name: "Save",
        })
          .click();
        await visit.sees("Saved Settings");
        assert.equal(await allowed.inputValue(), typed);
        await page.locator(".side").getByRole("link", { name: "Groups", exact: true }).click();
        await visit.sees("Leave without saving?");
        await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
        await page.locator("#access").getByRole("button", { name: "Save" }).click();
        const saved =
          async () => (await (await page.request.get(`${dashboard.api.base}/settings`)).json());
        await until("both", async () => {
          const { access, block_ttl } = await saved();
          return block_ttl === 17 && access.allowed.includes("192.0.2.0/24");
        });
      },
    );
    await t.step("what was done to many at once is not offered back one by one", async () => {
      const post = (path: string, data: unknown) =>
        page.request.post(`${dashboard.api.base}/${path}`, { data });
      const { id } = await (await post("rules", { rule: "||batch.example^" })).json();
      assert.equal((await post("rules/batch", { add: [], remove: [id] })).status(), 200);
      await visit.open("/audit");
      await visit.button(/^Details/).click();
      await visit.sees("Can't be put back from here");
    });
    await t.step(
      "further pages of the audit log stay when the page is looked at again",
      async () => {
        const entry = (id: number) => ({
          id: `e${id}`,
          time: "2026-01-01T12:00:00Z",
          actor: { kind: "cli", name: null, address: null },
          action: "create",
          resource: { type: "rule", id: null },
          before: null,
          after: { rule: `||n${id}.example^` },
          node: null,
        });
        let newest = 4;
        await page.route(/\/api\/v1\/audit\b/, async (route) => {
          const from = Number(new URL(route.request().url()).searchParams.get("next") ?? newest);
          const items = [from, from - 1].filter((id) => id > 0).map(entry);
          await route.fulfill({ json: { items, next: from > 2 ? `${from - 2}` : null } });
        });
        await visit.open("/audit");
        await visit.button("More").click();
        await visit.sees("||n1.example^");
        newest++;
        await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
        await visit.sees("||n5.example^");
        assert.equal(await page.locator(".audit-row").count(), 5);
        // More is new than a page holds.
        newest += 3;
        await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
        await visit.sees("||n8.example^");
        assert.equal(await page.locator(".audit-row").count(), 2);
        assert.equal(await visit.button("More").count(), 1);
        await page.unrouteAll();
      },
    );
    await t.step("a part that fails says so, and is tried again", async () => {
      const response = await page.request.post(`${dashboard.api.base}/clients`, {
        data: { name: "Radio", addresses: ["127.0.0.24"] },
      });
      const { id } = await response.json();
      const error = { code: "internal", message: "the log is gone" };
      await page.route(
        /\/api\/v1\/(querylog|auth\/sessions)\b(?!\/stream)/,
        (route) => route.fulfill({ status: 500, json: { error } }),
      );
      const failed = page.locator(".error-box", { hasText: "the log is gone" });
      for (const target of ["/", "/account", `/clients/${id}`]) {
        await visit.open(target);
        await failed.first().waitFor();
      }
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await failed.getByRole("button", { name: "Retry" }).click();
      await failed.waitFor({ state: "detached" });
    });
    await t.step("devices are marked and moved by keys", async () => {
      await visit.open("/clients");
      await page.locator(".virtual-row").first().waitFor();
      await page.locator(".virtual").focus();
      await page.keyboard.press("Space");
      await visit.sees("1 device marked");
      await page.keyboard.press("Space");
      await page.getByText("1 device marked").waitFor({ state: "detached" });
      await page.keyboard.press("Space");
      await page.getByLabel("Move to group …").selectOption({ label: "Kids" });
      await visit.sees("1 device is now in Kids");
    });
    await t.step("while nobody leads nothing is offered that would be refused", async () => {
      await page.route("**/api/v1/status", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        const cluster = { ...json.cluster, writable: false };
        await route.fulfill({ response, json: { ...json, cluster } });
      });
      const banner = "No change can be made through this node at the moment.";
      const button = (name: string) => page.locator("main").getByRole("button", { name });
      await visit.open("/users");
      await visit.sees(banner);
      for (const name of ["Add user", "More: ann", "Remove: ann"]) {
        await until(name, () => button(name).isDisabled());
      }
      await visit.open("/lists");
      await visit.sees(banner);
      // Lists are each node's own to download.
      assert.equal(await button("Refresh").isDisabled(), false);
      await visit.open("/lists?tab=recommended");
      await visit.sees(banner);
      await page.locator("main [role=switch]").first().waitFor();
      assert.equal(await page.locator("main [role=switch]:enabled").count(), 0);
      await visit.open("/clients");
      await visit.sees(banner);
      await page.locator(".virtual-row").first().waitFor();
      assert.equal(await page.locator(".virtual-row select:enabled").count(), 0);
      await page.unrouteAll({ behavior: "ignoreErrors" });
    });
    await t.step("the log runs, holds for who reads, and goes on", async () => {
      await visit.open("/log?live=1");
      await dashboard.ask("127.0.0.23", `one.${BLOCKED}`);
      await visit.openRow(`one.${BLOCKED}`);
      await dashboard.ask("127.0.0.23", "two.example");
      await visit.button(/^\d+ new$/).waitFor();
      assert.equal(await page.locator(".virtual-row", { hasText: "two.example" }).count(), 0);
      await visit.button("Close").click();
      await page.locator(".virtual-row", { hasText: "two.example" }).waitFor();
    });
    await t.step("what comes is drawn with the nodes that are there", async () => {
      await visit.open("/log?live=1");
      await page.locator(".virtual-row").first().waitFor();
      await page.evaluate(`kept = document.querySelector("#row-0")`);
      await dashboard.ask("127.0.0.23", "three.example");
      await page.locator("#row-0", { hasText: "three.example" }).waitFor();
      assert.equal(await page.evaluate(`kept === document.querySelector("#row-0")`), true);
    });
    await t.step("a row that was chosen by keys stays in its place, until they leave", async () => {
      await page.locator(".virtual").focus();
      await page.keyboard.press("ArrowDown");
      const chosen = page.locator(".virtual-row[aria-selected=true]");
      await page.locator("#row-1[aria-selected=true]").waitFor();
      const text = await chosen.textContent();
      await dashboard.ask("127.0.0.23", "four.example");
      await visit.button(/^\d+ new$/).waitFor();
      assert.equal(await chosen.textContent(), text);
      await page.keyboard.press("ArrowUp");
      await page.locator("#row-0", { hasText: "four.example" }).waitFor();
    });
    await t.step("what was decided from a row is taken back in the row", async () => {
      await visit.open("/log?outcome=blocked");
      await visit.openRow(`one.${BLOCKED}`);
      await page.locator(".panel-go[data-action=allow]").click();
      const row = page.locator(".virtual-row", { hasText: `one.${BLOCKED}` }).first();
      const undo = row.getByRole("button", { name: `Undo: one.${BLOCKED}` });
      await undo.waitFor();
      const rules = async () =>
        (await (await page.request.get(`${dashboard.api.base}/rules`)).json()).items
          .filter(({ spec }: { spec: { rule: string } }) => spec.rule === `@@|one.${BLOCKED}^`)
          .length;
      assert.equal(await rules(), 1);
      await visit.button("Dismiss").click();
      await undo.click();
      await visit.sees("Undone");
      await undo.waitFor({ state: "detached" });
      assert.equal(await rules(), 0);
      await page.locator(".panel-go[data-action=allow]").click();
      await undo.waitFor();
      await page.locator(".virtual").focus();
      await page.keyboard.press("u");
      await undo.waitFor({ state: "detached" });
      assert.equal(await rules(), 0);
      await visit.button("Close").click();
    });
    await t.step("a log that too many watch is read every so often", async () => {
      await page.route("**/api/v1/querylog/stream*", async (route) => {
        const error = { code: "unavailable", message: "8 streams run" };
        await route.fulfill({ status: 503, json: { error } });
      });
      await visit.open("/log?live=1");
      await visit.sees(/^Too many watch/);
      await dashboard.ask("127.0.0.23", "polled.example");
      await page.locator(".virtual-row", { hasText: "polled.example" }).waitFor();
      await page.unrouteAll({ behavior: "ignoreErrors" });
    });
    await t.step("everybody is told of a new version, and that nothing is filtered", async () => {
      let version = "";
      await page.route("**/api/v1/status", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        await route.fulfill({ response, json: { ...json, version: version || json.version } });
      });
      await visit.open("/");
      await visit.sees("Filtering");
      version = "99.0.0";
      await visit.sees("The service is now version 99.0.0.");
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await visit.open("/settings");
      const protection = page.getByRole("switch", { name: "Filter queries" });
      await protection.click();
      await visit.sees("Protection is off: nothing is filtered for anybody.");
      await page.locator(".banners").getByRole("button", { name: "Turn on" }).click();
      await page.locator(".banner.danger").waitFor({ state: "detached" });
    });
    await t.step(
      "who is locked out sees for how long, and who may not come here where to",
      async () => {
        await using other = await dashboard.visit();
        await other.page.route("**/api/v1/auth/login", async (route) => {
          const error = { code: "locked", message: "too many attempts" };
          const headers = { "retry-after": "65" };
          await route.fulfill({ status: 429, headers, json: { error } });
        });
        await other.open("/sign-in");
        await other.field("Name").fill("ann");
        await other.field("Password").fill("a wrong password");
        await other.button("Sign in").click();
        await other.sees(/^Too many attempts: try again in 1:0\d/);
        await other.page.route("**/api/v1/auth/me", async (route) => {
          const error = { code: "forbidden", message: "Host: svc.example is not allowed" };
          await route.fulfill({ status: 403, json: { error } });
        });
        await other.open("/log");
        await other.sees("Host: svc.example is not allowed");
        await other.sees(/http:\/\/127\.0\.0\.1:\d+\//);
      },
    );
    await t.step("the API goes and comes back", async () => {
      await visit.open("/");
      let isGone = true;
      await page.route("**/api/**", (route) => isGone ? route.abort() : route.continue());
      await visit.sees(/^No answer from the API since/);
      isGone = false;
      await page.getByText(/^No answer from the API since/).waitFor({ state: "detached" });
      await page.unrouteAll();
    });
    await t.step("who has typed is asked before leaving", async () => {
      await visit.open("/rules");
      await page.locator("textarea").fill("||half.example^");
      await page.locator(".side").getByRole("link", { name: "Groups", exact: true }).click();
      await visit.sees("Leave without saving?");
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      assert.equal(await page.locator("textarea").inputValue(), "||half.example^");
    });
    dashboard.service.assertCalm();
  },
});
