import assert from "node:assert/strict";
import type { HttpGet } from "../http/mod.ts";
import { checkUpdate } from "./check.ts";
import { compareVersions } from "./versions.ts";

const none = { permissions: "none" } as const;
const URL_OF_SERVICE = "https://releases.example/latest";

function service(body: string, status = 200): HttpGet {
  return () =>
    Promise.resolve({
      status,
      headers: { "content-type": "application/json" },
      body: (async function* () {
        yield await Promise.resolve(new TextEncoder().encode(body));
      })(),
    });
}

Deno.test(
  "checkUpdate() tells whether the release service knows a newer release",
  none,
  async () => {
    const ask = (body: unknown) =>
      checkUpdate(URL_OF_SERVICE, service(JSON.stringify(body)), "0.7.0");
    const page = "https://releases.example/0.8.0";
    assert.deepEqual(await ask({ version: "0.8.0", url: page }), {
      current: "0.7.0",
      latest: "0.8.0",
      newer: true,
      url: page,
    });
    assert.deepEqual(await ask({ tag_name: "v0.7.0", html_url: "javascript:alert(1)" }), {
      current: "0.7.0",
      latest: "0.7.0",
      newer: false,
      url: null,
    });
    const unasked = () => assert.fail("no service is configured");
    assert.deepEqual(await checkUpdate(null, unasked, "0.7.0"), {
      current: "0.7.0",
      latest: null,
      newer: false,
      url: null,
    });
  },
);

Deno.test("checkUpdate() says what is wrong with the release service", none, async (t) => {
  const rows: [string, HttpGet, RegExp][] = [
    ["an error", service("{}", 500), /^update\.url: releases\.example: .*500/],
    ["no JSON", service("<html>"), /^update\.url: releases\.example: the answer is no JSON/],
    ["no version", service('{"a": 1}'), /names no version such as 1\.2\.3$/],
    ["a word", service('{"version": "newest"}'), /names no version such as 1\.2\.3$/],
    ["no connection", () => Promise.reject(new Error("refused")), /^update\.url: .*refused/],
  ];
  for (const [name, get, message] of rows) {
    await t.step(name, () =>
      assert.rejects(checkUpdate(URL_OF_SERVICE, get, "0.7.0"), {
        code: "unavailable",
        message,
      }));
  }
});

Deno.test("compareVersions() orders as semantic versioning says", none, () => {
  const ascending = [
    ["0.7.0-1", "0.7.0-alpha", "0.7.0-alpha.1", "0.7.0-beta.2", "0.7.0-beta.11", "0.7.0"],
    ["0.7.1", "0.10.0", "1.0.0-rc.1", "1.0.0"],
  ].flat();
  for (const [i, a] of ascending.entries()) {
    for (const [k, b] of ascending.entries()) {
      assert.equal(Math.sign(compareVersions(a, b) ?? NaN), Math.sign(i - k), `${a} and ${b}`);
    }
  }
  assert.equal(compareVersions("1.0.0+a", "1.0.0+b"), 0);
  assert.equal(compareVersions("1.0", "1.0.0"), null);
});
