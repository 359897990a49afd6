import assert from "node:assert/strict";
import { AUDIT_ACTIONS, AUDIT_TYPES } from "../../src/model/mod.ts";
import { de } from "./de.ts";
import { en } from "./en.ts";

/** Where each word stands, and what kind of thing it is. */
function placesOf(words: unknown, path = ""): string[] {
  if (typeof words !== "object" || words === null) return [`${path}: ${typeof words}`];
  return Object.entries(words).flatMap(([key, value]) => placesOf(value, `${path}.${key}`));
}

/** Words that are the same in both: names, and what both languages borrowed. */
const SAME =
  /^(OK|Name|Upstreams?|DNSSEC|Version|Cache|Admin|Auto|Cluster|Router|Android|iPhone|Windows|Linux|Browser|Details|Client.*|CSV|NDJSON|Webhook.*|ms|Tracker|Phishing|Streaming|Software|Hosting|Messenger|System|Pause|Filter|Navigation|Code|\d.*|A \(|AAAA|CNAME|NXDOMAIN|REFUSED|User|Passphrase)/;

Deno.test("German says all that English says, and no more", { permissions: "none" }, () => {
  assert.deepEqual(placesOf(de).sort(), placesOf(en).sort());
});

Deno.test("German is German", { permissions: "none" }, () => {
  const same: string[] = [];
  const compare = (a: unknown, b: unknown, path: string): void => {
    if (typeof a === "string") {
      if (a === b && !SAME.test(a)) same.push(`${path}: ${a}`);
    } else if (typeof a === "object" && a !== null) {
      for (const key of Object.keys(a)) {
        compare(
          (a as Record<string, unknown>)[key],
          (b as Record<string, unknown>)[key],
          `${path}.${key}`,
        );
      }
    }
  };
  compare(en, de, "");
  assert.deepEqual(same, []);
});

Deno.test("every word of the pages is used", { permissions: { read: true } }, () => {
  const sources: string[] = [];
  const read = (folder: URL): void => {
    for (const { name, isDirectory } of Deno.readDirSync(folder)) {
      if (isDirectory && name !== "text") read(new URL(`${name}/`, folder));
      else if (/\.tsx?$/.test(name)) sources.push(Deno.readTextFileSync(new URL(name, folder)));
    }
  };
  read(new URL("../", import.meta.url));
  const text = sources.join("\n");
  const unused = Object.entries(en).flatMap(([area, words]) =>
    new RegExp(`\\bt\\.${area}\\b(?!\\.)`).test(text)
      ? []
      : Object.keys(words).filter((key) => !text.includes(`t.${area}.${key}`))
        .filter((key) => !new RegExp(`t\\.${area}\\[`).test(text) && !/^\d+$/.test(key))
        .map((key) => `${area}.${key}`)
  );
  assert.deepEqual(unused, []);
});

Deno.test("whatever the audit log may tell has words, and nothing else", {
  permissions: "none",
}, () => {
  for (const { audit: { actions, types } } of [en, de]) {
    assert.deepEqual(Object.keys(actions).sort(), [...AUDIT_ACTIONS].sort());
    assert.deepEqual(Object.keys(types).sort(), [...AUDIT_TYPES].sort());
  }
});
