// Goal: what a busy time leaves is given back, and nobody waits for that while there is much to answer.
import assert from "node:assert/strict";
import { Rest } from "./rest.ts";

const MIB = 1024 * 1024;

Deno.test("Rest gives back what has grown once few ask", { permissions: "none" }, () => {
  let [queries, bytes, given] = [0, 20 * MIB, 0];
  const rest = new Rest(() => queries, () => bytes, () => {
    given++;
    bytes = 15 * MIB;
  });
  /** Looks, and looks once more; says how often that gave something back. */
  const look = () => {
    const before = given;
    rest.look();
    rest.look();
    return given - before;
  };
  assert.equal(look(), 2, "what the start has left, and what of it was still to be swept");
  for (let i = 0; i < 5; i++) {
    queries += 10_000;
    bytes += 10 * MIB;
    rest.look();
  }
  assert.equal(given, 2, "not while it is busy");
  queries += 100;
  assert.equal(look(), 2);
  bytes += 7 * MIB;
  assert.equal(look(), 0, "too little is not worth it");
  bytes += 2 * MIB;
  rest.look();
  queries += 10_000;
  rest.look();
  assert.equal(given, 5, "the second half waits for the next rest");
  assert.equal(look(), 1);
});
