// Goal: tokens and webhooks are made, tried and removed on the dashboard, and what is secret of them is
// shown once. Method: a real browser against a running service, a receiver of the test's own.

import assert from "node:assert/strict";
import { BROWSER_PERMISSIONS, Dashboard } from "./dashboard.ts";
import { hasProgram, until } from "./harness.ts";

Deno.test({
  name: "the dashboard makes tokens and webhooks, and shows their secrets once",
  ignore: !hasProgram("chromium"),
  permissions: BROWSER_PERMISSIONS,
  fn: async (t) => {
    const received: string[] = [];
    await using receiver = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      async (request) => {
        received.push((await request.json()).event);
        return new Response();
      },
    );
    const { port } = receiver.addr as Deno.NetAddr;
    await using dashboard = await Dashboard.start({ webhooks: { networks: ["127.0.0.1"] } });
    const { api, origin } = dashboard;

    await t.step("a token is made, used and revoked", async () => {
      await using visit = await dashboard.visit();
      await visit.open("/");
      await visit.goTo("API tokens");
      await visit.press(visit.button("Add token"));
      await visit.field("Name").fill("phone");
      await visit.field("Valid for").selectOption("90");
      await visit.press(visit.button("Save"));
      await visit.sees("Copy it now: it is kept nowhere and shown this once.");
      const token = await visit.page.locator("dialog code").textContent() ?? "";
      assert.match(token, /^svc_[0-9a-f]{64}$/);
      await visit.page.keyboard.press("Escape");
      const headers = { authorization: `Bearer ${token}` };
      const me = await (await fetch(`${origin}/api/v1/auth/me`, { headers })).json();
      assert.deepEqual([me.kind, me.name, me.role], ["token", "phone", "viewer"]);
      await visit.open("/tokens");
      await visit.settled();
      assert.ok(!(await visit.page.content()).includes(token));
      await visit.press(visit.button("Remove: phone"));
      await visit.press(visit.button("Revoke"));
      await visit.sees("No token yet.");
      assert.deepEqual((await api.call("GET", "tokens")).items, []);
    });

    await t.step("a secret is copied out of its dialog where there is no TLS", async () => {
      await using visit = await dashboard.visit();
      const { page } = visit;
      await page.addInitScript("Object.defineProperty(navigator, 'clipboard', {})");
      await visit.open("/tokens");
      await visit.button("Add token").click();
      await visit.field("Name").fill("radio");
      await visit.button("Save").click();
      const code = page.locator("dialog code");
      const token = await code.textContent() ?? "";
      assert.match(token, /^svc_/);
      // Drawn out of the dialog, a selection does not close it.
      const box = (await code.boundingBox())!;
      await page.mouse.move(box.x + 5, box.y + 5);
      await page.mouse.down();
      await page.mouse.move(5, 5);
      await page.mouse.up();
      await visit.button("Copy").click();
      await visit.sees("Copied");
      assert.equal(await code.textContent(), token);
      await page.mouse.click(5, 5); // Beside it.
      await code.waitFor({ state: "detached" });
      await visit.button("Add token").click();
      await visit.field("Name").focus();
      await page.keyboard.press("Control+V");
      assert.equal(await visit.field("Name").inputValue(), token);
    });

    await t.step("a webhook is added, tried and removed", async () => {
      await using visit = await dashboard.visit();
      await visit.open("/webhooks");
      await visit.press(visit.button("Add webhook"));
      await visit.field("Name").fill("home");
      await visit.field("Address").fill(`http://127.0.0.1:${port}/hook/secret`);
      await visit.press(visit.button("Save"));
      await visit.page.locator("dialog .problem").first().waitFor(); // It is for no event yet.
      await visit.field("A problem begins").check();
      await visit.press(visit.button("Save"));
      await visit.sees(/It signs what is sent/);
      assert.match(await visit.page.locator("dialog code").textContent() ?? "", /^[0-9a-f]{64}$/);
      await visit.page.keyboard.press("Escape");
      await visit.press(visit.button("Deliveries: home"));
      await visit.sees("This node has sent nothing yet since it started.");
      await visit.press(visit.button("Test"));
      await visit.sees("The receiver took it.");
      await visit.sees("Delivered");
      await until("the event", () => received.includes("test"));
      await visit.page.keyboard.press("Escape");
      await visit.press(visit.button("Remove: home"));
      await visit.press(visit.button("Remove"));
      await visit.sees("No webhook yet.");
    });
    dashboard.service.assertCalm();
  },
});
