import assert from "node:assert/strict";
import { openApiDocument } from "../api/mod.ts";
import { openapi } from "./openapi.ts";

Deno.test(
  "openapi() prints the document that the API answers",
  { permissions: "none" },
  async () => {
    const lines: string[] = [];
    const { log } = console;
    console.log = (line: string) => void lines.push(line);
    try {
      assert.equal(await openapi([]), 0);
    } finally {
      console.log = log;
    }
    assert.deepEqual(JSON.parse(lines.join("\n")), JSON.parse(JSON.stringify(openApiDocument())));
  },
);
