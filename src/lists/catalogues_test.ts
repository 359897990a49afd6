import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { findListUrlProblem } from "../model/mod.ts";
import { PRESETS, RECOMMENDED } from "./recommended.ts";
import { decodeServices } from "./services.ts";

const none = { permissions: "none" } as const;

Deno.test(
  "RECOMMENDED holds 36 lists that can be fetched, each under an ID of its own",
  none,
  () => {
    assert.equal(RECOMMENDED.length, 36);
    assert.equal(new Set(RECOMMENDED.map(({ id }) => id)).size, 36);
    assert.equal(new Set(RECOMMENDED.map(({ url }) => url)).size, 36);
    for (const { id, url, description, licence } of RECOMMENDED) {
      assert.match(id, /^[a-z][a-z0-9_]{0,63}$/);
      assert.equal(findListUrlProblem(url), null, url);
      assert.ok(description.length > 0 && licence.length > 0);
      assert.doesNotMatch(url, /hagezi.*\/(?:hosts|domains)\//, "moved away, the address is dead");
    }
  },
);

Deno.test("RECOMMENDED marks what forbids commercial use and keeps it out of presets", none, () => {
  const marked = RECOMMENDED.filter(({ nonCommercial }) => nonCommercial);
  assert.deepEqual(marked.map(({ id }) => id), ["peter_lowe", "dan_pollock", "phishing_army"]);
  for (const { id, presets } of marked) assert.deepEqual(presets, [], id);
});

Deno.test("every preset has lists, and Don't break anything has the fewest", none, () => {
  const count = (id: string) =>
    RECOMMENDED.filter(({ presets }) => presets.some((p) => p === id)).length;
  assert.deepEqual(PRESETS.map(({ name }) => name), [
    "Balanced",
    "Strict",
    "Family",
    "Don't break anything",
  ]);
  const counts = PRESETS.map(({ id }) => count(id));
  assert.deepEqual(counts, [5, 15, 12, 2]);
});

Deno.test(
  "decodeServices() leaves out what can't be read, and services with nothing left",
  none,
  () => {
    const services = [
      {
        id: "one",
        name: "One",
        group: "cdn",
        icon_svg: "<svg/>",
        rules: [
          "||one.example^",
          "||*.one.example^",
          "||x.one.example^$dnstype=A",
          "||one.test",
          "|192.0.2.*",
          "192.0.2.1 one.example",
        ],
      },
      {
        id: "two",
        name: "Two",
        rules: ["/two[0-9]/", "@@||two.example^", "||two.example^$dnsrewrite=NXDOMAIN"],
      },
    ];
    assert.deepEqual(decodeServices(JSON.stringify({ blocked_services: services, groups: [] })), [
      { id: "one", name: "One", group: "cdn", rules: ["||one.example^", "||one.test"] },
    ]);
  },
);

Deno.test("decodeServices() says what is wrong with a text that is no catalogue", none, () => {
  const rows = [
    ["<html>", /is no JSON/],
    ["{}", /blocked_services/],
    ['{"blocked_services":[{"id":"a b","name":"x","rules":[]}]}', /blocked_services\.0\.id/],
  ] as const;
  for (const [text, message] of rows) {
    assert.throws(() => decodeServices(text), (error) => {
      return error instanceof SvcError && error.code === "invalid" && message.test(error.message);
    });
  }
});

const REAL = new URL("../../../shared/lists/services.json", import.meta.url);
const isThere = (() => {
  try {
    return Deno.statSync(REAL).isFile;
  } catch {
    console.warn("decodeServices() on a real catalogue: ignored, ../shared/lists is not here");
    return false;
  }
})();

Deno.test({
  name: "decodeServices() reads a real catalogue of about 140 services",
  permissions: { read: true },
  ignore: !isThere,
  fn: () => {
    const services = decodeServices(Deno.readTextFileSync(REAL));
    assert.ok(services.length >= 130 && services.length <= 139, `${services.length} services`);
    const youtube = services.find(({ id }) => id === "youtube");
    assert.ok(youtube?.rules.includes("||youtube.com^"));
    assert.ok(services.every(({ rules }) => rules.length > 0));
  },
});
