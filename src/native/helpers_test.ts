import assert from "node:assert/strict";
import { openHost } from "./host.ts";

const SCHED_GETATTR = { x86_64: 315, aarch64: 275 }[Deno.build.arch];

Deno.test({
  name: "Helpers puts the helpers of the runtime behind, and no other thread",
  permissions: { run: [Deno.execPath()], ffi: true },
  ignore: openHost() === null,
  fn: async () => {
    // In a process of its own: only root could raise them again.
    const source = `
      import { openHost, Helpers } from ${JSON.stringify(import.meta.resolve("./mod.ts"))};
      const host = openHost();
      const helpers = new Helpers(host);
      const counts = [helpers.stepBack()];
      // Files are read by threads that begin when there is something to read.
      await Promise.all(Array.from({ length: 4 }, () => Deno.readTextFile("/proc/self/stat")));
      counts.push(helpers.stepBack(), helpers.stepBack());
      const all = [...Deno.readDirSync("/proc/self/task")].map(({ name }) => {
        const stat = Deno.readTextFileSync("/proc/self/task/" + name + "/stat");
        const end = stat.lastIndexOf(")");
        const attr = new Uint8Array(48);
        host.syscall(${SCHED_GETATTR}n, BigInt(name), attr, 48n, 0n);
        return {
          name: stat.slice(stat.indexOf("(") + 1, end),
          nice: +stat.slice(end + 2).split(" ")[16],
          sliceNs: Number(new DataView(attr.buffer).getBigUint64(24, true)),
        };
      });
      console.log(JSON.stringify({ counts, all }));`;
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--no-lock", source],
      env: { NO_COLOR: "1" },
    }).output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
    const { counts, all } = JSON.parse(new TextDecoder().decode(stdout)) as {
      counts: number[];
      all: { name: string; nice: number; sliceNs: number }[];
    };
    const usual = all.find(({ name }) => name === "deno");
    assert.ok(usual !== undefined);
    const behind = all.filter(({ nice }) => nice !== usual.nice);
    assert.ok(behind.length >= 1, "V8 has at least one helper");
    for (const { name, nice } of behind) assert.match(`${name} ${nice}`, /^V8 .* 10$/);
    // Kernels before 6.12 leave time slices as they are.
    const isTaken = behind[0].sliceNs !== usual.sliceNs;
    const readers = all.filter(({ name }) => /^tokio-runtime-w/.test(name));
    const long = all.filter(({ sliceNs }) => isTaken && sliceNs === behind[0].sliceNs);
    if (isTaken) assert.deepEqual(new Set(long), new Set([...behind, ...readers]));
    assert.ok(readers.length >= 1, "files are read by others");
    const [first, more, last] = counts;
    assert.ok(first >= behind.length && first + more >= behind.length + readers.length);
    assert.equal(last, 0, "each once");
  },
});
