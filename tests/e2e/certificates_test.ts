import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { connect, createServer } from "node:tls";
import type { AddressInfo } from "node:net";
import { makeAuthority } from "./certificates.ts";

Deno.test("Authority.issue() covers names and addresses for the time it is told", {
  permissions: { env: true },
}, async () => {
  const authority = await makeAuthority();
  const notAfter = new Date(Date.now() - 1_000);
  const notBefore = new Date(notAfter.getTime() - 60_000);
  const { cert, key } = await authority.issue({
    names: ["dns.example", "*.dns.example"],
    ips: ["192.0.2.1", "2001:db8::1"],
    notBefore,
    notAfter,
  });
  const [leaf, root] = [new X509Certificate(cert), new X509Certificate(authority.cert)];
  assert.ok(leaf.verify(root.publicKey) && leaf.checkIssued(root) && root.ca && !leaf.ca);
  assert.ok(leaf.checkPrivateKey(createPrivateKey(key)));
  assert.deepEqual(leaf.subjectAltName?.split(", ").slice(0, 3), [
    "DNS:dns.example",
    "DNS:*.dns.example",
    "IP Address:192.0.2.1",
  ]);
  assert.ok(leaf.validToDate.getTime() < Date.now());
});

Deno.test("Authority.issue() makes what a TLS client accepts", {
  permissions: { env: true, net: true },
}, async () => {
  const authority = await makeAuthority();
  const { cert, key } = await authority.issue({ names: ["dns.example"], usage: "server" });
  const server = createServer({ cert, key }, (socket) => socket.end("hello"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const socket = connect({
    host: "127.0.0.1",
    port,
    servername: "dns.example",
    ca: authority.cert,
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.on("data", (chunk: Uint8Array) => resolve(new TextDecoder().decode(chunk)));
  socket.on("error", reject);
  assert.equal(await promise, "hello");
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.destroy();
  await closed;
  await new Promise((resolve) => server.close(resolve));
});
