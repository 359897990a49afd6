import assert from "node:assert/strict";
import { checkContentType } from "./content_type.ts";

Deno.test("checkContentType() refuses pages alone", { permissions: "none" }, () => {
  for (const type of [undefined, "text/plain; charset=utf-8", "application/octet-stream"]) {
    checkContentType(type);
  }
  for (const type of ["text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml"]) {
    assert.throws(() => checkContentType(type), /HTML page/, type);
  }
});
