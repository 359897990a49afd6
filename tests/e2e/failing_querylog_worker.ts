/// <reference lib="deno.worker" />
/** The worker of the query log, which also fails when it is told to: for tests of its supervisor. */
import "../../src/isolate/querylog/querylog_worker.ts";

self.addEventListener("message", ({ data }: MessageEvent<{ readonly type: string }>) => {
  if (data.type === "reject") void Promise.reject(new Error("rejected by the test"));
  if (data.type !== "throw") return;
  setTimeout(() => {
    throw new Error("thrown by the test");
  });
});
