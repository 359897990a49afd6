// Goal: whoever takes over a part of the service has next to nothing to do harm with, and the service
// itself lacks nothing. Method: the kernel's own word of every thread, an isolate that attempts what
// it may not do, and everything that is read or written later done once more from inside.

import assert from "node:assert/strict";
import { Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { ask } from "./clients.ts";
import {
  type ConfigText,
  OwnDirectory,
  PERMISSIONS,
  PROGRAM,
  runProgram,
  Service,
  until,
} from "./harness.ts";

const IS_ROOT = Deno.build.os === "linux" && Deno.uid() === 0;
const OTHER_USER = { name: "nobody", uid: 65_534 };
/** QUIC is the runtime's to listen on: below 1024 that takes a capability for as long as it runs. */
const LOW_PORT = 784;
const NET_BIND_SERVICE = "0000000000000400";
const NOTHING = "0000000000000000";

/** A folder that the service's user owns, with a file beside it. */
async function ownedDirectory(stack: AsyncDisposableStack): Promise<string> {
  const { path } = stack.use(await OwnDirectory.make());
  const outside = `${path}/../outside-${path.split("/").at(-1)}`;
  await Deno.writeTextFile(outside, "nobody's business");
  stack.defer(async () => await Deno.remove(outside));
  if (IS_ROOT) await Deno.chown(path, OTHER_USER.uid, OTHER_USER.uid);
  return path;
}

/** As root: becomes somebody else. */
function withUser(server: ConfigText[string] = {}): ConfigText {
  return { server: { ...server, ...(IS_ROOT && { user: OTHER_USER.name }) } };
}

/** What the kernel says of each thread of a process, each distinct line once. */
async function threadsOf(pid: number): Promise<Record<string, string>[]> {
  const script = `cat /proc/${pid}/task/*/status`;
  const { stdout } = await runProgram("sh", "-c", script);
  return stdout.trim().split(/^(?=Name:)/m).map((status) =>
    Object.fromEntries(status.trim().split("\n").map((line) => line.split(/:\s*/, 2)))
  );
}

Deno.test({
  name: "every thread is shut in, with no right but the one that is still needed",
  permissions: PERMISSIONS,
  ignore: Deno.build.os !== "linux",
}, async (t) => {
  await using stack = new AsyncDisposableStack();
  const directory = await ownedDirectory(stack);
  const authority = await makeAuthority();
  await Deno.writeTextFile(`${directory}/ca.crt`, authority.cert);
  await writePair(directory, "dns", await authority.issue({ names: ["dns.example"] }));
  await Deno.mkdir(`${directory}/lists`);
  await Deno.writeTextFile(`${directory}/lists/local.txt`, "||one.example^\n");
  await runProgram("chown", "-R", IS_ROOT ? OTHER_USER.name : String(Deno.uid()), directory);
  const service = stack.use(
    await Service.start({
      directory,
      ...(PROGRAM === undefined && { main: "tests/e2e/hostile_service.ts" }),
      config: {
        server: {
          listen: ["127.0.0.1:0"],
          ...(IS_ROOT && { user: OTHER_USER.name }),
          tls: {
            cert: "dns.crt",
            key: "dns.key",
            dot: ["127.0.0.1:0"],
            ...(IS_ROOT && { doq: [`127.0.0.1:${LOW_PORT}`] }),
          },
        },
        filter: {
          ...{ default_lists: false, services: false, directory: false },
          lists: [{ name: "Local", path: "lists/local.txt" }],
        },
      },
    }),
  );
  const api = await Api.of(service);

  await t.step("as the kernel says of each", async () => {
    const threads = await threadsOf(service.pid);
    assert.ok(threads.length > 5, `${threads.length} threads`);
    for (const { Name, Uid, CapEff, CapPrm, CapBnd, NoNewPrivs, Seccomp } of threads) {
      assert.deepEqual([NoNewPrivs, Seccomp], ["1", "2"], Name);
      if (!IS_ROOT) continue;
      assert.deepEqual(
        [Uid.split("\t")[0], CapEff, CapPrm, CapBnd],
        [String(OTHER_USER.uid), NET_BIND_SERVICE, NET_BIND_SERVICE, NET_BIND_SERVICE],
        Name,
      );
    }
  });

  await t.step("as its status says", async () => {
    const { sandbox, problems } = await api.call("GET", "status");
    assert.equal(sandbox.seccomp, true);
    // A kernel may lack Landlock; then the status says so.
    const lacks = problems.some((problem: string) => problem.startsWith("sandbox: "));
    assert.equal(sandbox.landlock, !lacks);
    if (!IS_ROOT) return;
    assert.equal(sandbox.user, OTHER_USER.name);
    assert.deepEqual(sandbox.capabilities, ["CAP_NET_BIND_SERVICE"]);
  });

  await t.step("and whoever attempts more is refused", async () => {
    if (PROGRAM !== undefined) return; // A built file holds nobody hostile.
    for (const attempts of ["calls", "runtime"]) {
      const { time: _, level: __, message: ___, attempts: ____, ...found } = await service.logged(
        "attempted",
        { attempts },
      );
      const wanted = Object.fromEntries(
        Object.keys(found).map((
          name,
        ) => [name, name === "write in the store" ? "DONE" : "refused"]),
      );
      assert.deepEqual(found, wanted);
    }
  });

  await t.step("while everything that is read or written later still is", async () => {
    assert.equal((await ask(service.address, "one.example", Qtype.A)).answers.length, 1);
    await Deno.writeTextFile(`${directory}/lists/new.txt`, "||two.example^\n");
    await Deno.rename(`${directory}/lists/new.txt`, `${directory}/lists/local.txt`);
    await writePair(directory, "new", await authority.issue({ names: ["new.example"] }));
    for (const end of ["crt", "key"]) {
      if (IS_ROOT) await Deno.chown(`${directory}/new.${end}`, OTHER_USER.uid, OTHER_USER.uid);
      await Deno.rename(`${directory}/new.${end}`, `${directory}/dns.${end}`);
    }
    await api.create("records", { name: "own.example", type: "A", value: "192.0.2.7" });
    service.kill("SIGHUP");
    await service.logged("the certificate is shown as it is now", {
      certificate: "server.tls.cert",
    });
    await until(
      "the new list",
      async () => (await ask(service.address, "two.example", Qtype.A)).answers.length === 1,
    );
    assert.equal((await ask(service.address, "own.example", Qtype.A)).answers.length, 1);
    await until(
      "the query log",
      async () => (await api.call("GET", "querylog?name=own.example")).entries.length > 0,
    );
  });
  assert.equal((await service.stop()).code, 0);
});

Deno.test({
  name: "sandbox = false leaves the fence out, and gives up rights all the same",
  permissions: PERMISSIONS,
  ignore: Deno.build.os !== "linux",
}, async () => {
  await using stack = new AsyncDisposableStack();
  const directory = await ownedDirectory(stack);
  const config = { ...withUser({ listen: ["127.0.0.1:0"] }), security: { sandbox: false } };
  const service = stack.use(await Service.start({ directory, config }));
  for (const { Name, Uid, CapEff, NoNewPrivs, Seccomp } of await threadsOf(service.pid)) {
    assert.deepEqual([NoNewPrivs, CapEff, Seccomp], ["1", NOTHING, "0"], Name);
    if (IS_ROOT) assert.equal(Uid.split("\t")[0], String(OTHER_USER.uid), Name);
  }
  const { sandbox, problems } = await (await Api.of(service)).call("GET", "status");
  assert.deepEqual([sandbox.landlock, sandbox.seccomp], [false, false]);
  assert.deepEqual(problems.filter((problem: string) => problem.startsWith("sandbox")), []);
});

Deno.test({
  name: "svc run says who can't be become, and exits with 1",
  permissions: PERMISSIONS,
  ignore: Deno.build.os !== "linux",
}, async () => {
  await using service = await Service.launch({
    config: { server: { listen: ["127.0.0.1:0"], user: "no-such-user" } },
  });
  assert.equal((await service.ended).code, 1);
  assert.match(service.rest.join("\n"), /^svc run: server\.user: there is no user no-such-user: /);
});
