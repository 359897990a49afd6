import assert from "node:assert/strict";
import { parseName } from "../dns/mod.ts";
import { TrustAnchors } from "./anchors.ts";
import { FakeCuts, FakeKey } from "./fakes.ts";
import { knownInsecure } from "./known.ts";
import { bogus, insecure } from "./outcome.ts";
import { endAt } from "./zone_keys.ts";

const wire = (text: string) => parseName(text)!;
const NOW_S = 1_000;
const UNSIGNED = insecure("delegated unsigned");

/** What is known of a name in a zone, where `test` and `island.a.test` have anchors. */
function known(name: string, zone: string, finding = UNSIGNED, expiresAtS = NOW_S + 60) {
  const cuts = new FakeCuts();
  cuts.set(wire("a.test"), { kind: "zone", zone: endAt(wire("a.test"), finding), expiresAtS });
  const anchors = new TrustAnchors(
    [new FakeKey("test").anchor(), new FakeKey("island.a.test").anchor()],
    [wire("off.test")],
  );
  return knownInsecure(wire(name), wire(zone), anchors, cuts, NOW_S);
}

Deno.test(
  "knownInsecure() finds the unsigned zone above, within its time",
  { permissions: "none" },
  () => {
    assert.equal(known("www.a.test", "a.test"), UNSIGNED);
    assert.equal(known("www.b.a.test", "b.a.test"), UNSIGNED);
    assert.equal(known("www.test", "test"), null, "it is above");
    assert.equal(known("www.a.test", "test"), null, "of a zone that is signed");
    assert.equal(known("www.island.a.test", "a.test"), null, "an anchor is below the zone");
    assert.equal(known("www.island.a.test", "island.a.test"), null);
    assert.equal(known("www.example", "example"), null, "no anchor is above");
    assert.equal(known("www.a.test", "a.test", bogus("spoilt")), null);
    assert.equal(known("www.a.test", "a.test", UNSIGNED, NOW_S), null, "its time is over");
  },
);
