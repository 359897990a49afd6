import assert from "node:assert/strict";
import { configListId } from "./source.ts";

Deno.test("configListId() is made of the name alone", { permissions: "none" }, () => {
  const rows = [
    ["", "li_cfg_e3b0c44298fc1c14"], // The hash of nothing (FIPS 180-4).
    ["abc", "li_cfg_ba7816bf8f01cfea"],
  ];
  for (const [name, id] of rows) assert.equal(configListId(name), id);
  assert.notEqual(configListId("Ads"), configListId("ads"));
});
