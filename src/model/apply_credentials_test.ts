// Goal: tokens and webhooks are made, changed and removed as the log says, named apart, bounded, and
// what is secret of them goes nowhere but into the store.
import assert from "node:assert/strict";
import { apply } from "./apply.ts";
import type { Change } from "./command.ts";
import { CREDENTIALS_MAX } from "./credentials.ts";
import { commandOf, ids, newTokenChange, newWebhookChange, stateAfter } from "./fakes.ts";
import { type LiveState, writesOf } from "./live_state.ts";

const none = { permissions: "none" } as const;

function outcome(state: LiveState, change: Change): string {
  const { settled } = apply(state, commandOf(change));
  return settled.kind === "done" ? "done" : `${settled.code} ${settled.message}`;
}

Deno.test("apply() makes tokens and webhooks, and tells the audit log no secret", none, () => {
  const state = stateAfter(newTokenChange(1, "phone"));
  const made = apply(state, commandOf(newWebhookChange(1, "home")));
  assert.ok(made.kind === "made");
  const { action, resource, after } = made.audit;
  assert.deepEqual([action, resource], ["create", { type: "webhook", id: ids.webhook(1) }]);
  assert.deepEqual(after, newWebhookChange(1, "home").spec);
  assert.doesNotMatch(JSON.stringify(made.audit), /SECRET/);
  const stored = [...writesOf(made.state)].map(({ key }) => key.join("/"));
  assert.ok(stored.includes(`credential/tokens/${ids.token(1)}`));
  assert.ok(stored.includes(`credential/webhooks/${ids.webhook(1)}`));
});

Deno.test("apply() changes of a secret what is given, and keeps the rest", none, () => {
  const state = stateAfter(newWebhookChange(1, "home"));
  const { kind, id, spec, secret } = newWebhookChange(1, "home");
  const change = {
    ...{ type: "credential_replace", kind, id, ifMatch: 1 },
    ...{ spec: { ...spec, enabled: false }, secret: { key: "another-key-of-ours" } },
  } as const satisfies Change;
  const made = apply(state, commandOf(change));
  assert.ok(made.kind === "made");
  const { webhooks } = made.state.credentials;
  assert.deepEqual(webhooks.get(id)?.secret, { url: secret.url, key: "another-key-of-ours" });
  assert.equal(webhooks.get(id)?.revision, 2);
  assert.match(outcome(made.state, change), /^revision_mismatch/);
});

Deno.test("apply() refuses credentials that can't stand", none, async (t) => {
  const state = stateAfter(newTokenChange(1, "phone"), newWebhookChange(1, "home"));
  const token = newTokenChange(2, "tablet");
  const rows: readonly (readonly [string, unknown, RegExp])[] = [
    ["a foreign ID", { ...token, id: ids.webhook(2) }, /^invalid id: wh_0+2 is no ID of tokens/],
    ["an ID that is there", { ...token, id: ids.token(1) }, /^conflict .*there is one already/],
    ["a name that reads alike", newTokenChange(2, "Phone"), /^conflict name: .* reads alike/],
    ["the name of another kind", newTokenChange(2, "home"), /^done/],
    ["a hash that is none", { ...token, secret: { sha256: "SECRET" } }, /^invalid secret\.sha256/],
    ["no role", { ...token, spec: { name: "a" } }, /^invalid spec\.role/],
    [
      "one that is not there",
      { type: "credential_delete", kind: "tokens", id: ids.token(7), ifMatch: null },
      /^not_found/,
    ],
  ];
  for (const [name, change, message] of rows) {
    await t.step(name, () => {
      const said = outcome(state, change as Change);
      assert.match(said, message);
      assert.doesNotMatch(said, /SECRET/);
    });
  }
  await t.step("one too many", () => {
    const all = Array.from(
      { length: CREDENTIALS_MAX.tokens },
      (_, n) => newTokenChange(n, `n${n}`),
    );
    assert.match(outcome(stateAfter(...all), newTokenChange(999, "x")), /^conflict tokens: there/);
  });
});

Deno.test("apply() gives the name of a token free with it", none, () => {
  const gone = {
    type: "credential_delete",
    kind: "tokens",
    id: ids.token(1),
    ifMatch: null,
  } as const satisfies Change;
  const state = stateAfter(newTokenChange(1, "phone"), gone);
  assert.equal(state.credentials.tokens.size, 0);
  assert.equal(outcome(state, newTokenChange(2, "phone")), "done");
});
