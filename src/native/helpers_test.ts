import assert from "node:assert/strict";
import { openHost } from "./host.ts";

Deno.test({
  name: "stepHelpersBack() puts the helpers of the runtime behind, and no other thread",
  permissions: { run: [Deno.execPath()], ffi: true },
  ignore: openHost() === null,
  fn: async () => {
    // In a process of its own: only root could raise them again.
    const source = `
      import { openHost, stepHelpersBack } from ${JSON.stringify(import.meta.resolve("./mod.ts"))};
      const count = stepHelpersBack(openHost());
      const threads = [...Deno.readDirSync("/proc/self/task")].map(({ name }) => {
        const stat = Deno.readTextFileSync("/proc/self/task/" + name + "/stat");
        const end = stat.lastIndexOf(")");
        return { name: stat.slice(stat.indexOf("(") + 1, end), nice: +stat.slice(end + 2).split(" ")[16] };
      });
      console.log(JSON.stringify({ count, threads }));`;
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--no-lock", source],
      env: { NO_COLOR: "1" },
    }).output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
    const { count, threads } = JSON.parse(new TextDecoder().decode(stdout)) as {
      count: number;
      threads: { name: string; nice: number }[];
    };
    const usual = threads.find(({ name }) => name === "deno")?.nice;
    const behind = threads.filter(({ nice }) => nice !== usual);
    assert.equal(behind.length, count);
    assert.ok(count >= 1, "V8 has at least one helper");
    for (const { name, nice } of behind) assert.match(`${name} ${nice}`, /^V8 .* 10$/);
  },
});
