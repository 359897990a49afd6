import assert from "node:assert/strict";
import { Wish } from "./signals.ts";

const none = { permissions: "none" } as const;

Deno.test("Wish waits for who can fulfil it, and is fulfilled once", none, () => {
  const wish = new Wish();
  let fulfilled = 0;
  wish.express();
  wish.express();
  wish.onWish = () => fulfilled++;
  assert.equal(fulfilled, 1, "asked for before");
  wish.express();
  assert.equal(fulfilled, 2);
  wish.onWish = null;
  wish.express();
  assert.equal(fulfilled, 2);
  wish.onWish = () => fulfilled++;
  assert.equal(fulfilled, 3, "asked for in between");
});
