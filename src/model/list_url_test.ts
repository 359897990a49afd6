import assert from "node:assert/strict";
import { findListUrlProblem } from "./list_url.ts";

const CASES = [
  ["https://lists.example/ads.txt", "fetched"],
  ["https://192.0.2.1:8443/ads.txt?x=1", "fetched"],
  ["http://127.0.0.1:8000/ads.txt", "fetched"],
  ["http://127.9.9.9/ads.txt", "fetched"],
  ["http://[::1]/ads.txt", "fetched"],
  ["http://localhost/ads.txt", "fetched"],
  ["http://lists.localhost/ads.txt", "fetched"],
  ["http://2130706433/ads.txt", "fetched"], // 127.0.0.1 as URLs may spell it.
  ["http://lists.example/ads.txt", "no https URL"],
  ["http://localhost.example/ads.txt", "no https URL"],
  ["http://127.0.0.1.example/ads.txt", "no https URL"],
  ["http://192.0.2.1/ads.txt", "no https URL"],
  ["http://[2001:db8::1]/ads.txt", "no https URL"],
  ["file:///etc/passwd", "no https URL"],
  ["data:text/plain,ads.example", "no https URL"],
  ["ftp://lists.example/ads.txt", "no https URL"],
  ["https://user:secret@lists.example/", "user name or password"],
  ["lists.example/ads.txt", "cannot be read"],
  ["", "cannot be read"],
] as const;

Deno.test(
  "findListUrlProblem() takes https, and http on loopback",
  { permissions: "none" },
  async (t) => {
    for (const [text, want] of CASES) {
      await t.step(`${text}: ${want}`, () => {
        const problem = findListUrlProblem(text);
        if (want === "fetched") assert.equal(problem, null);
        else assert.ok(problem?.includes(want), problem ?? "no problem");
      });
    }
  },
);
