import assert from "node:assert/strict";
import { joined, type Paged } from "./pages.ts";

const page = (ids: string, next: string | null): Paged<{ id: string }> => ({
  items: [...ids].map((id) => ({ id })),
  next,
});

Deno.test("joined() keeps what was loaded behind a first page that reaches it", {
  permissions: "none",
}, () => {
  const rows = [
    ["nothing was there", null, page("cba", "a"), "cba a"],
    ["nothing is new", page("cba", "a"), page("cb", "b"), "cba a"],
    ["some is", page("cba", null), page("edc", "c"), "edcba null"],
    ["it was a first page alone", page("cba", "a"), page("edcb", "b"), "edcba a"],
    ["more is new than a page has", page("cba", "a"), page("hgf", "f"), "hgf f"],
    ["nothing is left", page("cba", "a"), page("", null), " null"],
  ] as const;
  for (const [name, known, first, want] of rows) {
    const { items, next } = joined(known, first);
    assert.equal(`${items.map(({ id }) => id).join("")} ${next}`, want, name);
  }
});
