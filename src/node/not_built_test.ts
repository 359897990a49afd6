import assert from "node:assert/strict";
import { type Config, defaultConfig, parseConfig } from "../config/mod.ts";
import { notBuilt } from "./not_built.ts";

const none = { permissions: "none" } as const;

function read(text: string): Config {
  const { config, problems } = parseConfig(text, { file: "svc.toml", directory: "/etc/svc" });
  assert.ok(config !== null, JSON.stringify(problems));
  return config;
}

/** What a key adds to that which the defaults ask for. */
function added(text: string): string[] {
  const asked = notBuilt(defaultConfig("/etc/svc"));
  return notBuilt(read(text)).filter((key) => !asked.includes(key));
}

Deno.test("notBuilt() names the keys that are asked for and not in force", none, async (t) => {
  const rows = [
    ["", []],
    ['[server]\nuser = "svc"', []],
    ["[recursion]\nenabled = true", ["recursion"]],
    ['[update]\nurl = "https://release.example"', []],
    ['[[upstream]]\naddress = "192.0.2.1"', []],
    ['[[upstream]]\naddress = "tls://192.0.2.2"', []],
  ] as const;
  for (const [text, want] of rows) {
    await t.step(text, () => assert.deepEqual(added(text), want));
  }
});

Deno.test("notBuilt() says nothing of what is turned off", none, () => {
  assert.deepEqual(notBuilt(read("")), []);
});
