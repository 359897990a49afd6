import assert from "node:assert/strict";
import { FreeMemory } from "./free_memory.ts";

Deno.test("FreeMemory gives back what has grown, and asks no more of what is in use", {
  permissions: "none",
}, () => {
  let [used, inUse, calls] = [100, 60, 0];
  const free = new FreeMemory(() => used, () => {
    calls++;
    used = inUse;
  }, 20);
  const look = (bytes: number) => {
    used = bytes;
    free.look();
    return calls;
  };
  assert.equal(look(100), 1, "what a start has left");
  assert.equal(look(79), 1, "too little");
  inUse = 75;
  assert.equal(look(80), 2);
  assert.equal(look(90), 2, "it is in use");
  assert.equal(look(60), 2, "some was freed by itself");
  assert.equal(look(80), 3, "grown since");
  inUse = 40;
  assert.equal(look(56), 3);
  assert.equal(look(55), 4, "what was in use is over");
  assert.equal(look(40), 4);
});
