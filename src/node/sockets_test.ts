import assert from "node:assert/strict";
import { freePort } from "../../tests/free_port.ts";
import { type HostPort, parseIp } from "../addr/mod.ts";
import { ApiServer } from "../api/mod.ts";
import { type Config, defaultConfig } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import { openNative } from "../native/mod.ts";
import {
  ApiListeners,
  closeDnsSockets,
  LateListeners,
  LeftSockets,
  namedSockets,
  openSockets,
} from "./sockets.ts";

const native = Deno.build.os === "linux" ? openNative() : null;
const options = { permissions: { net: true, ffi: true }, ignore: native === null } as const;

function at(port: number): HostPort {
  return { ip: parseIp("127.0.0.1")!, port };
}

/** A configuration that listens on free ports, the API at `api`. */
function configOf(api: readonly HostPort[]): Config {
  const config = defaultConfig("/etc/svc");
  return {
    ...config,
    server: { ...config.server, listen: [at(0)] },
    api: { ...config.api, listen: api },
  };
}

/** A server on what was opened at `listen`. */
function serverOf(listen: readonly HostPort[], hasToken = false) {
  const config = configOf(listen);
  const sockets = openSockets(native!, config, 1);
  closeDnsSockets(native!, sockets);
  return new ApiServer({
    listen,
    sockets: new ApiListeners(native!, sockets),
    tls: null,
    hasToken,
    handler: () => Promise.resolve(new Response("here")),
  });
}

Deno.test(
  "ApiServer serves on sockets that were opened for it, and closes them",
  options,
  async () => {
    const server = serverOf([at(0), at(0)]);
    const listening = await server.start();
    assert.equal(new Set(listening.map(({ port }) => port)).size, 2);
    for (const { port } of listening) {
      const response = await fetch(`http://127.0.0.1:${port}/`, {
        headers: { connection: "close" },
      });
      assert.equal(await response.text(), "here");
    }
    await server.stop(0);
    for (const { port } of listening) {
      // Nobody waits there for an answer that never comes.
      await assert.rejects(
        Deno.connect({ hostname: "127.0.0.1", port }),
        Deno.errors.ConnectionRefused,
      );
    }
  },
);

Deno.test(
  "openSockets() leaves the API out where it can't be had, and says why",
  options,
  async () => {
    using other = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = other.addr as Deno.NetAddr;
    const server = serverOf([at(0), at(port)]);
    await assert.rejects(server.start(), (error) => {
      assert(error instanceof SvcError);
      assert.equal(error.code, "unavailable");
      assert.match(
        error.message,
        new RegExp(`^api\\.listen: tcp 127\\.0\\.0\\.1:${port}: .*in use`),
      );
      return true;
    });
  },
);

/** A configuration whose cluster's channel listens at `listen`. */
function clustered(listen: readonly HostPort[]): Config {
  const file = "/etc/svc/none";
  const cluster = { node: "a", bootstrap: true, listen, members: [] };
  return {
    ...configOf([]),
    cluster: { ...cluster, caFile: file, certFile: file, keyFile: file },
  };
}

Deno.test(
  "LateListeners has sockets that the next program finds under their addresses",
  options,
  async () => {
    const config = clustered([at(freePort())]);
    const [address] = config.cluster!.listen;
    const sockets = openSockets(native!, config, 1);
    closeDnsSockets(native!, sockets);
    const channel = new LateListeners(native!, sockets.cluster, "cluster.listen");
    const named = namedSockets({ ...sockets, cluster: channel.opened }, config)
      .filter(({ name }) => name.use === "cluster");
    assert.equal(named.length, 1);
    // Nobody takes connections yet, and they wait.
    (await Deno.connect({ hostname: "127.0.0.1", port: address.port })).close();
    const left = new LeftSockets(
      native!,
      named.map(({ name }) => name),
      named.map(() => channel.copy(address)),
    );
    const next = openSockets(native!, config, 1, left);
    closeDnsSockets(native!, next);
    channel.close();
    assert.throws(() => channel.copy(address), SvcError);
    (await Deno.connect({ hostname: "127.0.0.1", port: address.port })).close();
    new LateListeners(native!, next.cluster, "cluster.listen").close();
    await assert.rejects(
      Deno.connect({ hostname: "127.0.0.1", port: address.port }),
      Deno.errors.ConnectionRefused,
    );
  },
);

Deno.test("ApiServer serves both families at one port, as they are named", options, async () => {
  const port = freePort();
  const server = serverOf(["0.0.0.0", "::"].map((text) => ({ ip: parseIp(text)!, port })), true);
  await server.start();
  for (const host of ["127.0.0.1", "[::1]"]) {
    const response = await fetch(`http://${host}:${port}/`, { headers: { connection: "close" } });
    assert.equal(await response.text(), "here");
  }
  await server.stop(0);
});

Deno.test("LateListeners tries again for an address that somebody else had", options, () => {
  const other = Deno.listen({ hostname: "127.0.0.1", port: freePort() });
  const address = at(other.addr.port);
  const config = clustered([address]);
  const sockets = openSockets(native!, config, 1);
  closeDnsSockets(native!, sockets);
  const channel = new LateListeners(native!, sockets.cluster, "cluster.listen");
  const names = () =>
    namedSockets({ ...sockets, cluster: channel.opened }, config)
      .filter(({ name }) => name.use === "cluster").length;
  assert.throws(() => channel.copy(address), /in use/);
  assert.equal(names(), 0);
  other.close();
  new LeftSockets(native!, [{ use: "cluster", address: "" }], [channel.copy(address)]).closeRest();
  assert.equal(names(), 1, "and it is there for the next program");
  channel.close();
});
