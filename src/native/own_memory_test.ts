import assert from "node:assert/strict";
import { openHost } from "./host.ts";

Deno.test({
  name: "dropCode() gives back what the start took of the program's file, and all goes on",
  permissions: { run: [Deno.execPath()], ffi: true },
  ignore: openHost() === null,
  fn: async () => {
    // In a process of its own, where nobody else runs code meanwhile.
    const source = `
      import { anonymousBytes, dropCode, openHost } from ${
      JSON.stringify(import.meta.resolve("./mod.ts"))
    };
      const kib = (name) =>
        Number(new RegExp(name + ":\\\\s+(\\\\d+)").exec(Deno.readTextFileSync("/proc/self/status"))[1]);
      const host = openHost();
      const before = kib("RssFile");
      dropCode(host);
      const after = kib("RssFile");
      dropCode(host); // What runs is back by now.
      const ofText = JSON.parse(JSON.stringify(["it", "runs"])).join(" ");
      console.log(JSON.stringify({
        before, after, ofText, anonymous: anonymousBytes(host) / 1024, told: kib("RssAnon"),
      }));`;
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--no-lock", source],
      env: { NO_COLOR: "1" },
    }).output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
    const { before, after, ofText, anonymous, told } = JSON.parse(new TextDecoder().decode(stdout));
    assert.ok(after < before / 2, `${after} KiB of ${before}`);
    assert.equal(ofText, "it runs");
    assert.ok(anonymous > told / 2 && anonymous < told * 2, `${anonymous} KiB, not ${told}`);
  },
});
