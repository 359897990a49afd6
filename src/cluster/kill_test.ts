// Goal: what a member answered is there after its process died, its log is never called damaged, and
// its term does not fall. Method: a child that is the only voter of a cluster makes changes as fast as
// it can and is killed (SIGKILL) at a moment that chance picks; then its files are opened again. Set
// SVC_KILLS for more kills.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { denoRaftDisk, openStore, RaftStorage } from "../store/mod.ts";

const KILLS = Number(Deno.env.get("SVC_KILLS") ?? 10);
const KILL_AFTER_MS_MAX = 120;

const program = new URL("./kill_child.ts", import.meta.url).href;

async function runChild(directory: string, first: number, killAfterMs: number): Promise<string[]> {
  const permissions = [`--allow-read=${directory}`, `--allow-write=${directory}`];
  const args = ["run", "--no-check", "--no-prompt", "--unstable-kv", ...permissions, program];
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args, directory, String(first)],
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const complaint = new Response(child.stderr).text();
  let said = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    said += text;
    timer ??= setTimeout(() => child.kill("SIGKILL"), killAfterMs); // From its first word on.
  }
  clearTimeout(timer);
  const { signal } = await child.status;
  assert.equal(signal, "SIGKILL", await complaint);
  await complaint;
  return said.split("\n").slice(0, -1); // The last line may have been cut by the kill.
}

Deno.test("a member has what it answered when its process is killed", async () => {
  const prng = new Prng(seedFromEnv());
  const directory = await Deno.makeTempDir();
  const acked = new Set<string>();
  const tried = new Set<string>();
  let [term, cluster] = [0, ""];
  try {
    for (let kill = 0; kill < KILLS; kill++) {
      for (const line of await runChild(directory, kill * 1_000_000, prng.int(KILL_AFTER_MS_MAX))) {
        const [verb, text, of] = line.split(" ");
        if (verb === "try") tried.add(text);
        if (verb === "ack") acked.add(text);
        if (verb !== "term") continue;
        assert.ok(Number(text) > term, `term ${text} after ${term}`);
        if (cluster !== "") assert.equal(of, cluster);
        [term, cluster] = [Number(text), of];
      }
      const clock = { nowMs: () => Date.now() };
      const opened = await openStore({ directory, node: "a", clock, program: "0.7.0" });
      const { store, applier } = opened;
      const storage = await RaftStorage.open({
        ...{ store, applier, node: "a", nowMs: clock.nowMs, disk: denoRaftDisk(directory) },
        drawNumber: () => "0",
      });
      assert.equal(storage.damage, null, `kill ${kill}`);
      const { hardState, snapshot, entries, appliedIndex } = storage.persisted;
      assert.ok(hardState.currentTerm >= term);
      assert.ok(appliedIndex <= snapshot.index + entries.length);
      const { rules } = store.state.collections;
      for (const id of acked) assert.equal(rules.get(id)?.revision, 1, `${id} of kill ${kill}`);
      for (const id of rules.keys()) assert.ok(tried.has(id), `${id} was never tried`);
      storage.close();
      await opened.close();
    }
    console.log(`${KILLS} kills, ${acked.size} changes answered`);
    assert.ok(acked.size > KILLS, "the child was at work");
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
