// Goal: a node that can't be opened or started leaves nothing behind, and one that is stopped does not
// either. Method: the real thing in this process, again and again in one folder.

import assert from "node:assert/strict";
import { join } from "node:path/posix";
import { type HostPort, parseIp } from "../addr/mod.ts";
import { type Config, defaultConfig } from "../config/mod.ts";
import { Qtype } from "../dns/mod.ts";
import { SvcError } from "../errors.ts";
import { DnsSupervisor } from "../isolate/mod.ts";
import { openNative } from "../native/mod.ts";
import { openStore } from "../store/mod.ts";
import { ask } from "../../tests/e2e/clients.ts";
import { freePort, until } from "../../tests/e2e/harness.ts";
import { Node } from "./node.ts";

const native = Deno.build.os === "linux" ? openNative() : null;
const PERMISSIONS = {
  net: true,
  ffi: true,
  read: true,
  write: true,
  env: true,
  sys: true,
} as const;

function at(port: number): HostPort {
  return { ip: parseIp("127.0.0.1")!, port };
}

function configOf(directory: string, listen: readonly HostPort[]): Config {
  const config = defaultConfig(directory);
  return {
    ...config,
    server: { ...config.server, listen, workers: 2 },
    // Never asked: names of the service itself need none.
    upstreams: [{
      kind: "udp",
      address: "127.0.0.1:9",
      endpoint: at(9),
      timeoutMs: 1_000,
      domains: [],
      clientSubnet: "off",
      name: null,
      groupsOnly: false,
    }],
    filter: { ...config.filter, services: false, defaultLists: false },
    security: { ...config.security, sandbox: false }, // It has no first stage.
    store: { dir: join(directory, "store") },
    querylog: { ...config.querylog, dir: join(directory, "querylog") },
    api: { ...config.api, listen: [at(freePort())] },
  };
}

/** Says whether store and addresses are anybody's to take. */
async function isGone({ store, api }: Config, { port }: HostPort): Promise<boolean> {
  try {
    const options = {
      directory: store.dir,
      clock: { nowMs: Date.now },
      program: "0",
      node: "local",
    };
    await (await openStore(options)).close();
    for (const one of [port, api.listen[0].port]) {
      Deno.listen({ hostname: "127.0.0.1", port: one }).close();
    }
    Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port }).close();
    return true;
  } catch (error) {
    const isTaken = error instanceof SvcError || error instanceof Deno.errors.AddrInUse;
    assert.ok(isTaken, String(error));
    return false;
  }
}

/** Runs a test with a folder of its own. */
function test(name: string, run: (directory: string) => Promise<void>): void {
  Deno.test({
    name,
    permissions: PERMISSIONS,
    ignore: native === null,
    sanitizeResources: false, // Isolates end in their own time.
    fn: async () => {
      const directory = await Deno.makeTempDir({ prefix: "svc-node-" });
      try {
        await run(directory);
      } finally {
        await Deno.remove(directory, { recursive: true });
      }
    },
  });
}

test("Node.open() that fails leaves nothing open", async (directory) => {
  using other = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = other.addr as Deno.NetAddr;
  const free = at(freePort());
  const config = configOf(directory, [free, at(port)]);
  for (let i = 0; i < 2; i++) {
    await assert.rejects(
      Node.open(config, null),
      (error) => error instanceof SvcError && error.message.includes(`127.0.0.1:${port}`),
    );
    assert.ok(await isGone(config, free), "what was opened before it failed");
  }
});

test("Node.start() that fails leaves nothing open", async (directory) => {
  const listen = at(freePort());
  const config = configOf(directory, [listen]);
  const node = await Node.open(config, null);
  const { start } = DnsSupervisor.prototype;
  DnsSupervisor.prototype.start = () => Promise.reject(new SvcError("unavailable", "no isolate"));
  try {
    await assert.rejects(node.start(), /no isolate/);
  } finally {
    DnsSupervisor.prototype.start = start;
  }
  await until("the end of its sockets", async () => await isGone(config, listen));
});

test("Node.stop() leaves nothing open, and the next one answers there", async (directory) => {
  const listen = at(freePort());
  const config = configOf(directory, [listen]);
  for (let i = 0; i < 2; i++) {
    const node = await Node.open(config, null);
    assert.equal(await isGone(config, listen), false);
    await node.start();
    const { port } = config.api.listen[0];
    const health = await fetch(`http://127.0.0.1:${port}/api/v1/health`);
    assert.equal((await health.json()).status, "ok");
    assert.equal((await ask(listen, "health.svc.test", Qtype.A)).answers.length, 1);
    await node.stop();
    await until("the end of its sockets", async () => await isGone(config, listen));
  }
});
