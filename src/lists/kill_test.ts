// Goal: the real disk keeps what the simulated one does. Method: a child process rewrites a list as
// fast as it can and is killed (SIGKILL) again and again at a moment that chance picks.
import assert from "node:assert/strict";
import { FakeClock, seededChance } from "./fakes.ts";
import { ListKeeper } from "./keeper.ts";
import type { HttpGet } from "../http/mod.ts";

const KILLS = 8;
const KILL_AFTER_MS_MAX = 120;
const SEED = Number(Deno.args.find((arg) => arg.startsWith("--seed="))?.slice(7) ?? 20260102);

const source = { id: "li_a", name: "Ads", url: "https://lists.example/" };
const never: HttpGet = () => Promise.reject(new Error("no network"));

/** The version of the kept text, 0 for none. */
async function keptVersion(directory: string): Promise<number> {
  const options = { clock: new FakeClock(), chance: () => 0, localListsDirectory: directory };
  const keeper = await ListKeeper.open(directory, { ...options, get: never });
  let version = 0;
  for await (const { bytes } of keeper.load([source])) {
    const lines = new Set(new TextDecoder().decode(bytes).trim().split("\n"));
    assert.equal(lines.size, 1, "a text is of one version");
    version = Number(/v(\d+)/.exec([...lines][0])?.[1]);
  }
  return version;
}

Deno.test("ListKeeper loses no list when its process is killed", {
  permissions: { read: true, write: true, run: [Deno.execPath()] },
}, async () => {
  const directory = await Deno.makeTempDir();
  const chance = seededChance(SEED);
  const program = new URL("./kill_child.ts", import.meta.url).href;
  let newest = 0;
  try {
    for (let kill = 1; kill <= KILLS; kill++) {
      const args = ["run", "--no-check", "--allow-read", "--allow-write", program, directory];
      const child = new Deno.Command(Deno.execPath(), {
        args: [...args, String(newest)],
        stdout: "piped",
        stderr: "null",
      }).spawn();
      const place = `kill ${kill}, --seed=${SEED}`;
      let said = "";
      let timer: ReturnType<typeof setTimeout> | undefined;
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
        said += text;
        // From its first word on, it is at work.
        timer ??= setTimeout(() => child.kill("SIGKILL"), chance() * KILL_AFTER_MS_MAX);
      }
      clearTimeout(timer);
      const { signal } = await child.status;
      assert.equal(signal, "SIGKILL", place);
      // The last line may have been cut by the kill.
      const versions = said.split("\n").slice(0, -1).map(Number);
      const reported = versions.at(-1) ?? newest;
      newest = await keptVersion(directory);
      assert.ok(newest >= reported && newest <= reported + 1, `${place}: ${newest}, ${reported}`);
    }
    assert.ok(newest >= KILLS, `the child was at work: version ${newest}`);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
