// Goal: downloads that are given up leave nothing behind. Method: the real client and the real disk
// against a server of this process that never ends its answers; descriptors and files are counted.
import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { denoDisk } from "./deno_disk.ts";
import { FakeClock } from "./fakes.ts";
import { ListKeeper } from "./keeper.ts";
import { nodeHttpGet } from "../http/mod.ts";
import { DOWNLOADS_MAX } from "./renewals.ts";

const ROUNDS = 20;
const DESCRIPTORS = "/proc/self/fd";
const isCounted = Deno.build.os === "linux";

const descriptors = () => isCounted ? [...Deno.readDirSync(DESCRIPTORS)].length : 0;

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let i = 0; i < 20_000 && !condition(); i++) await new Promise((r) => setTimeout(r, 1));
  assert.ok(condition(), what);
}

// All permissions: descriptors are only shown to who has them.
Deno.test("ListKeeper.stop() leaves no connection, descriptor or file of what it ends", async () => {
  let open = 0;
  const server = http.createServer((request, response) => {
    open++;
    response.on("close", () => open--);
    const path = request.url ?? "";
    if (path.startsWith("/head")) return; // Not even a head.
    response.writeHead(200);
    response.write("||ads.example^\n".repeat(10_000));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const directory = await Deno.makeTempDir();
  try {
    const keeper = await ListKeeper.open(directory, {
      get: nodeHttpGet({ lookup: () => Promise.reject(new Error("nothing is looked up")) }),
      clock: new FakeClock(),
      chance: () => 0,
      localListsDirectory: directory,
    });
    const sources = Array.from({ length: 2 * DOWNLOADS_MAX }, (_, i) => ({
      id: `li_${i}`,
      name: `${i}`,
      url: `http://127.0.0.1:${port}/${i % 4 === 0 ? "head" : "body"}${i}`,
    }));
    let before = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const { done } = keeper.refresh(sources, { intervalMs: 1, force: true });
      await until("the downloads", () => open === DOWNLOADS_MAX);
      keeper.stop();
      await done;
      await until("the end of the connections", () => open === 0);
      assert.deepEqual(await denoDisk.names(directory), []);
      if (round === 1) before = descriptors();
    }
    await until("descriptors closed", () => descriptors() <= before);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await Deno.remove(directory, { recursive: true });
  }
});
