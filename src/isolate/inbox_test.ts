import assert from "node:assert/strict";
import { Inbox } from "./inbox.ts";

Deno.test("Inbox knows of messages before they come", { permissions: "none" }, async () => {
  const memory = new SharedArrayBuffer(Inbox.MEMORY_BYTES);
  Inbox.announce(memory);
  const inbox = new Inbox(memory);
  assert.equal(inbox.isExpecting, true, "one that was sent before the isolate was there");
  inbox.heard();
  assert.equal(inbox.isExpecting, false);
  await inbox.arrivals();

  Inbox.announce(memory);
  Inbox.announce(memory);
  const events: string[] = [];
  const arrived = inbox.arrivals().then(() => events.push("arrived"));
  inbox.heard();
  await new Promise((resolve) => setTimeout(resolve, 1));
  events.push("the second");
  inbox.heard();
  await arrived;
  assert.deepEqual(events, ["the second", "arrived"]);
});

Deno.test("Inbox waits for no message for ever", { permissions: "none" }, async () => {
  const memory = new SharedArrayBuffer(Inbox.MEMORY_BYTES);
  const inbox = new Inbox(memory);
  Inbox.announce(memory);
  await inbox.arrivals();
  assert.equal(inbox.isExpecting, true);
  inbox.heard();
  assert.equal(inbox.isExpecting, false);
});
