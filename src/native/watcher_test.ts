import assert from "node:assert/strict";
import { type Native, openNative, Watcher } from "./mod.ts";

Deno.test({
  name: "Watcher keeps no descriptor once it has stopped",
  permissions: { ffi: true },
  ignore: Deno.build.os !== "linux",
}, async () => {
  const native = openNative();
  assert.ok(native !== null);
  const open = new Set<number>();
  const noted = (fd: number) => (open.add(fd), fd);
  const counting: Native = {
    ...native,
    epoll_create1: (flags) => noted(native.epoll_create1(flags)),
    eventfd: (count, flags) => noted(native.eventfd(count, flags)),
    close: (fd) => (open.delete(fd), native.close(fd)),
  };
  const watcher = new Watcher(counting);
  const running = watcher.run();
  assert.equal(open.size, 2);
  watcher.stop();
  await running;
  assert.deepEqual([...open], []);
  watcher.stop(); // Of what is not there any more.
  watcher.watch(0, () => assert.fail());
});
