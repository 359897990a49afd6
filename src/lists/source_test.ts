import assert from "node:assert/strict";
import { checkListUrl, configListId } from "./source.ts";

Deno.test("configListId() is made of the name alone", { permissions: "none" }, () => {
  const rows = [
    ["", "li_cfg_e3b0c44298fc1c14"], // The hash of nothing (FIPS 180-4).
    ["abc", "li_cfg_ba7816bf8f01cfea"],
  ];
  for (const [name, id] of rows) assert.equal(configListId(name), id);
  assert.notEqual(configListId("Ads"), configListId("ads"));
});

const CASES = [
  ["https://lists.example/ads.txt", "fetched"],
  ["https://192.0.2.1:8443/ads.txt?x=1", "fetched"],
  ["http://127.0.0.1:8000/ads.txt", "fetched"],
  ["http://127.9.9.9/ads.txt", "fetched"],
  ["http://[::1]/ads.txt", "fetched"],
  ["http://localhost/ads.txt", "fetched"],
  ["http://lists.localhost/ads.txt", "fetched"],
  ["http://2130706433/ads.txt", "fetched"], // 127.0.0.1 as URLs may spell it.
  ["http://lists.example/ads.txt", "only https"],
  ["http://localhost.example/ads.txt", "only https"],
  ["http://127.0.0.1.example/ads.txt", "only https"],
  ["http://192.0.2.1/ads.txt", "only https"],
  ["http://[2001:db8::1]/ads.txt", "only https"],
  ["file:///etc/passwd", "only https"],
  ["data:text/plain,ads.example", "only https"],
  ["ftp://lists.example/ads.txt", "only https"],
  ["https://user:secret@lists.example/", "user name or password"],
  ["lists.example/ads.txt", "cannot be read"],
  ["", "cannot be read"],
] as const;

Deno.test(
  "checkListUrl() takes https, and http on loopback",
  { permissions: "none" },
  async (t) => {
    for (const [text, want] of CASES) {
      await t.step(`${text}: ${want}`, () => {
        const checked = checkListUrl(text);
        if (want === "fetched") assert.equal(checked.kind, "url");
        else assert.ok(checked.kind === "problem" && checked.message.includes(want));
      });
    }
  },
);
