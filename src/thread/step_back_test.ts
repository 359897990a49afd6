import assert from "node:assert/strict";
import { Nice } from "./mod.ts";

/** Nice value of the thread that calls. */
function niceOfThread(): number {
  const stat = Deno.readTextFileSync("/proc/thread-self/stat");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
}

Deno.test({
  name: "stepBack() lowers the priority of the thread that calls, and of no other",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const before = niceOfThread();
    const source = `import { Nice, stepBack } from ${
      JSON.stringify(new URL("./mod.ts", import.meta.url))
    };
      stepBack(Nice.Last);
      const stat = Deno.readTextFileSync("/proc/thread-self/stat");
      self.postMessage(Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]));`;
    const url = `data:application/javascript,${encodeURIComponent(source)}`;
    const worker = new Worker(url, { type: "module" });
    const nice = await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
    });
    worker.terminate();
    assert.equal(nice, Nice.Last);
    assert.equal(niceOfThread(), before);
  },
});
