/// <reference lib="deno.worker" />
/** The worker of a dns isolate, which also fails when it is told to: for tests of its supervisor. */
import "../../src/isolate/dns/dns_worker.ts";
import { Hang } from "./hang.ts";

/** Ways to fail; posted to the worker as they are. */
export type Failure =
  /** An exception outside of every handler. */
  | { readonly type: "throw" }
  /** A promise that nobody waits for. */
  | { readonly type: "reject" }
  /** Never another turn; `memory` is that of a `Hang`. */
  | { readonly type: "hang"; readonly memory: SharedArrayBuffer }
  /** The same in a loop. */
  | { readonly type: "spin"; readonly memory: SharedArrayBuffer };

self.addEventListener("message", ({ data }: MessageEvent<Failure>) => {
  switch (data.type) {
    case "throw":
      setTimeout(() => {
        throw new Error("thrown by the test");
      });
      return;
    case "reject":
      void Promise.reject(new Error("rejected by the test"));
      return;
    case "hang":
      new Hang(data.memory).begin();
      return;
    case "spin":
      new Hang(data.memory).spin();
  }
});
