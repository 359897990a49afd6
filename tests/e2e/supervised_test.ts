// Goal: who supervises the service hears how it is, and that all is well only while it answers.
// Method: a socket as systemd's, and the datagrams that come.

import assert from "node:assert/strict";
import { OwnDirectory, PERMISSIONS, runProgram, Service, until } from "./harness.ts";

Deno.test({
  name: "svc run tells its supervisor how it is",
  permissions: PERMISSIONS,
  ignore: Deno.build.os !== "linux",
}, async () => {
  await using stack = new AsyncDisposableStack();
  const { path: directory } = stack.use(await OwnDirectory.make());
  const path = `${directory}/notify`;
  const socket = Deno.listenDatagram({ transport: "unixpacket", path });
  const heard: string[] = [];
  const hearing = (async () => {
    for await (const [bytes] of socket) heard.push(new TextDecoder().decode(bytes));
  })();
  stack.defer(async () => {
    socket.close();
    await hearing;
  });
  const env = ["env", `NOTIFY_SOCKET=${path}`, "WATCHDOG_USEC=300000"];
  const service = stack.use(
    await Service.start({
      directory,
      prefix: env,
      config: { server: { listen: ["127.0.0.1:0"] } },
    }),
  );
  const told = (message: string, count = 1) =>
    until(
      `${count} of ${message}`,
      () => heard.filter((one) => one.startsWith(message)).length >= count,
    );
  await told("READY=1");
  await told("WATCHDOG=1", 3);
  // Each look waits with descriptors of its own; connections come and go.
  const waiting = async () => {
    const { stdout } = await runProgram("ls", "-l", `/proc/${service.pid}/fd`);
    return stdout.split("anon_inode:").length;
  };
  const first = await waiting();
  await told("WATCHDOG=1", 13);
  const last = await waiting();
  assert.ok(last < first + 10, `${first} descriptors to wait with, and ${last} ten looks later`);
  service.kill("SIGHUP");
  await told("RELOADING=1\nMONOTONIC_USEC=");
  await told("READY=1", 2);
  service.kill("SIGUSR2");
  const { pid } = await service.logged("handed over to the next program");
  await told(`MAINPID=${pid}`);
  await told("READY=1", 3);
  const before = heard.length;
  await told("WATCHDOG=1", heard.filter((one) => one === "WATCHDOG=1").length + 2);
  assert.ok(!heard.slice(before).includes("STOPPING=1"), "the service goes on");
  Deno.kill(pid as number, "SIGTERM");
  await told("STOPPING=1");
  await service.ended;
});
