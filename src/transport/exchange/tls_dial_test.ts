import assert from "node:assert/strict";
import { createServer } from "node:net";
import * as tls from "node:tls";
import { makeAuthority } from "../../../tests/e2e/certificates.ts";
import { echo, fakeDot, LOOPBACK } from "./fakes.ts";
import { DialError, type TlsTarget } from "./dial.ts";
import { dialTls } from "./tls_dial.ts";

/** Node has it, and the types of this runtime do not yet. */
const { setDefaultCACertificates } = tls as unknown as {
  readonly setDefaultCACertificates: (certificates: readonly string[]) => void;
};

/** Deno resumes sessions of a client from 2.9.6 on; a runtime that does takes this line away. */
const RESUMES = !["2.9.5"].includes(Deno.version.deno);
const net = { permissions: { net: true, env: true } } as const;
const authority = await makeAuthority();
const issued = await authority.issue({ names: ["dns.test"] });

function targetAt(port: number, ca: string | null): TlsTarget {
  return { serverName: "dns.test", port, ca, alpn: ["dot"], protocol: "DNS over TLS" };
}

async function ended(socket: tls.TLSSocket): Promise<void> {
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.destroy();
  await closed;
}

Deno.test(
  "dialTls() hands on a session, which the runtime resumes with a server that public authorities " +
    "vouch for, if it can",
  { permissions: { ...net.permissions, sys: true } },
  async () => {
    await using server = await fakeDot(issued, ["dot"]);
    server.script = echo;
    const before = tls.getCACertificates("default");
    setDefaultCACertificates([authority.cert]);
    try {
      const { signal } = new AbortController();
      const target = targetAt(server.port, null);
      const sessions: Uint8Array[] = [];
      const first = await dialTls(target, LOOPBACK, null, signal, (one) => sessions.push(one));
      // Tickets come with what comes after the handshake.
      const answered = new Promise((resolve) => first.once("data", resolve));
      first.write(Uint8Array.of(0, 3, 1, 2, 3));
      await answered;
      assert.equal(first.isSessionReused(), false);
      await ended(first);
      assert.ok(sessions.length > 0, "the runtime tells of them in the end");
      const second = await dialTls(target, LOOPBACK, sessions[0], signal);
      assert.equal(second.isSessionReused(), RESUMES);
      assert.equal(second.authorized, true);
      await ended(second);
    } finally {
      setDefaultCACertificates(before);
    }
  },
);

Deno.test("dialTls() gives up when it is told to, before and while it waits", net, async () => {
  const server = createServer((socket) => void socket.resume()); // Takes connections, says nothing.
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const abort = new AbortController();
  const waiting = dialTls(targetAt(port, authority.cert), LOOPBACK, null, abort.signal);
  abort.abort();
  await assert.rejects(waiting, DialError);
  await assert.rejects(
    dialTls(targetAt(port, authority.cert), LOOPBACK, null, abort.signal),
    /is not asked any more/,
  );
  await new Promise((resolve) => server.close(resolve));
});

Deno.test("dialTls() waits for a handshake as long as it says, and no longer", net, async () => {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const { signal } = new AbortController();
  await assert.rejects(
    dialTls(targetAt(port, authority.cert), LOOPBACK, null, signal),
    /^DialError: took no connection within 3000 ms$/,
  );
  await new Promise((resolve) => server.close(resolve));
});
