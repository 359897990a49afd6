// Goal: whatever a source says, it is refused by name, or makes a plan that fits whole, leaves nothing
// to add a second time, and a part of svc.toml that is read. Method: recorded answers with values of
// theirs replaced by what nobody should send; SVC_MIGRATE_ROUNDS=N tries more than some.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { parseConfig } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import { commandOf, stateAfter } from "../model/fakes.ts";
import { apply } from "../model/mod.ts";
import { ADGUARD, adguardAnswer, fakeAsk, FakePihole, PASSWORD, PIHOLE, USER } from "./fakes.ts";
import { planMigration, type Product, readSource, wishesOf } from "./mod.ts";

const ROUNDS_DEFAULT = 150;
const PLACE = { services: null, timeZone: "UTC" };

/** What stands in the place of a value. */
const ODD: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e300, "", " ", "\n", "#", "\ud800", "\u202e", "\x00", "\x7f"],
  ...['"', "'''", "]\n[api]\nlisten = []", "x".repeat(300), "é".repeat(200), "https://", "tls://"],
  ...[
    "tls://[::1",
    "https://a b/c",
    "[/lan/]#",
    "[//]1.1.1.1",
    "[/a/]",
    "*.",
    "*",
    "..",
    "1.2.3.4/33",
  ],
  ...["::ffff:192.0.2.1", "fe80::1%eth0", "192.168.1.20", "0.0.0.0/0", "Local", "Mars/Base", "nas"],
  ...[
    "nas.home.arpa",
    "Default",
    "KIDS",
    "||a^$badfilter",
    "svc.test",
    "true,::/0,::1,lan",
    "a,a,a",
  ],
  ...["(((", "/x/", "__proto__", "constructor", [], {}, [[]], ["x"], { enabled: true }, [null]],
];

/** A copy with one value, wherever it stands, replaced. */
function spoiled(value: unknown, prng: Prng): unknown {
  const places: (readonly [Record<string, unknown>, string])[] = [];
  const copy = structuredClone({ value });
  const walk = (at: Record<string, unknown>): void => {
    for (const key of Object.keys(at)) {
      places.push([at, key]);
      const inner = at[key];
      if (typeof inner === "object" && inner !== null) walk(inner as Record<string, unknown>);
    }
  };
  walk(copy);
  const [object, key] = places[prng.int(places.length)];
  object[key] = ODD[prng.int(ODD.length)];
  return copy.value;
}

Deno.test("no answer of a source makes a plan that does not fit", {
  permissions: { env: ["SVC_SEED", "SVC_MIGRATE_ROUNDS"] },
}, async () => {
  const prng = new Prng(seedFromEnv());
  const rounds = Number(Deno.env.get("SVC_MIGRATE_ROUNDS") ?? ROUNDS_DEFAULT);
  const { signal } = new AbortController();
  let [planned, refused] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    const product: Product = prng.chance(0.5) ? "adguard" : "pihole";
    let answers: Readonly<Record<string, unknown>> = product === "adguard" ? ADGUARD : PIHOLE;
    for (let n = 1 + prng.int(4); n > 0; n--) {
      const names = Object.keys(answers);
      const name = names[prng.int(names.length)];
      answers = { ...answers, [name]: spoiled(answers[name], prng) };
    }
    const hole = new FakePihole(answers);
    const ask = fakeAsk((asked) =>
      product === "adguard" ? adguardAnswer(asked, answers) : hole.answer(asked)
    );
    const request = { product, url: "http://192.0.2.1", user: USER, password: PASSWORD };
    let source;
    try {
      source = await readSource({ ask, signal, farewell: () => signal }, request);
    } catch (error) {
      assert.ok(error instanceof SvcError && error.code === "unavailable", String(error));
      refused++;
      continue;
    }
    planned++;
    const wishes = wishesOf(source, PLACE);
    const { problems } = parseConfig(wishes.fragment, { file: "svc.toml", directory: "/etc/svc" });
    assert.deepEqual(problems.filter(({ severity }) => severity !== "note"), [], `round ${round}`);
    const state = stateAfter();
    const plan = planMigration("x", wishes, state, PLACE);
    for (const { name, detail } of plan.items) {
      assert.ok(name.length + (detail ?? "").length < 20_000);
    }
    if (plan.change === null) continue;
    const applied = apply(state, commandOf(plan.change));
    const why = applied.settled.kind === "refused" ? applied.settled.message : "";
    assert.equal(why, "", `round ${round}`);
    const again = planMigration("x", wishes, applied.state, PLACE);
    assert.equal(
      again.change,
      null,
      `round ${round}: ${JSON.stringify(again.items.filter(({ outcome }) => outcome === "added"))}`,
    );
  }
  assert.ok(planned > rounds / 10 && refused > 0);
});
