// Goal: what is no announcement of the peer's changes nothing, and who may not hold an address is
// told what is missing. Method: forged packets in a namespace, and starts that can't come to anything.
import assert from "node:assert/strict";
import { PERMISSIONS, PROGRAM, ROOT, runProgram, svcCommand, until } from "./harness.ts";
import type { ConfigText } from "./harness.ts";
import { HAS_NAMESPACES } from "./network.ts";
import {
  ADDRESSES,
  CLIENT,
  DNS_PORT,
  NodeFiles,
  Running,
  Segment,
  startVrrp,
  vrrpConfig,
} from "./segment.ts";

const options = { permissions: PERMISSIONS, ignore: !HAS_NAMESPACES };

/** A server that answers every query as a healthy node does: the probe asks nobody else. */
const HEALTHY = `
  const socket = Deno.listenDatagram({ transport: "udp", hostname: "0.0.0.0", port: ${DNS_PORT} });
  for (;;) {
    const [query, from] = await socket.receive();
    const answer = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1];
    const response = new Uint8Array([...query, ...answer]);
    response[2] |= 0x80;
    response[7] = 1;
    await socket.send(response, from);
  }`;

async function startHealthy(segment: Segment, files: NodeFiles, i: number): Promise<Running> {
  const file = `${files.directory}/healthy.ts`;
  await Deno.writeTextFile(file, HEALTHY);
  const run = ["run", "--quiet", "--no-config", "--unstable-net", "--allow-net", file];
  return Running.start([Deno.execPath(), ...run], { prefix: segment.on(i) });
}

/** Counts of ignored packets, as the status tells them. */
async function ignored(segment: Segment, file: string): Promise<Record<string, number>> {
  const [program, ...args] = [
    ...segment.on(0),
    ...svcCommand(["vrrp", "--status", "--config", file]),
  ];
  const { stdout } = await runProgram(program, ...args);
  const list = /^ignored +(.*)$/m.exec(stdout)?.[1] ?? "";
  return Object.fromEntries(
    Array.from(list.matchAll(/(\w+) (\d+)/g), ([, reason, count]) => [reason, Number(count)]),
  );
}

Deno.test(
  "svc vrrp ignores forged announcements of each kind, and counts them",
  options,
  async () => {
    await using segment = await Segment.make();
    await using files = await NodeFiles.make();
    const file = await files.write("0", vrrpConfig(0));
    await using _dns = await startHealthy(segment, files, 0);
    await using node = startVrrp(segment, 0, file);
    await node.logged("holding the address");
    // Somebody on the same segment, who has taken the peer's address beside its own.
    await segment.changeAddress(CLIENT, "add", ADDRESSES[1]);
    const script = [`${ROOT}tests/e2e/forge_child.ts`, segment.device, ADDRESSES[1], ADDRESSES[2]];
    const deno = [
      Deno.execPath(),
      "run",
      "--quiet",
      "--config",
      `${ROOT}deno.json`,
      "-A",
      ...script,
    ];
    const [program, ...args] = [...segment.on(CLIENT), ...deno];
    const { code, stderr } = await runProgram(program, ...args);
    assert.equal(code, 0, stderr);
    const want = Object.fromEntries(
      [
        "truncated",
        "ttl",
        "version",
        "type",
        "checksum",
        "router_id",
        "peer",
        "address",
        "interval",
      ]
        .map((reason) => [reason, 1]),
    );
    await until("all of them are counted", async () => "ttl" in await ignored(segment, file));
    assert.deepEqual(await ignored(segment, file), want);
    assert.deepEqual(await segment.holders(), [0], "their priority of 255 changed nothing");
    assert.ok(!node.logs.some(({ reason }) => reason === "the peer has a higher priority"));
    const said = node.logs.filter(({ message }) => message === "an announcement was ignored");
    assert.ok(said.some(({ reason, source }) => reason === "peer" && source === ADDRESSES[2]));
  },
);

Deno.test(
  "svc vrrp waits for an interface that is not there, and names those that are",
  options,
  async () => {
    await using segment = await Segment.make();
    await using files = await NodeFiles.make();
    const file = await files.write("0", vrrpConfig(0));
    await using _dns = await startHealthy(segment, files, 0);
    await segment.unplug(0);
    await using node = startVrrp(segment, 0, file);
    const line = await node.logged("vrrp.interface: there is no such interface: waiting for it");
    assert.deepEqual([line.interface, line.there], [segment.device, "lo"]);
    await segment.plug(0);
    await node.logged("the interface is there", { interface: segment.device });
    await node.logged("holding the address");
    assert.deepEqual(await segment.holders(), [0]);
    assert.equal((await node.end("SIGTERM")).code, 0);
    assert.deepEqual(await segment.holders(), []);
  },
);

/** Its last words, and how it ends. */
async function ends(node: Running): Promise<string> {
  const { code } = await node.ended;
  return `${code}: ${node.rest.join(" | ")}`;
}

const REFUSED: readonly (readonly [string, ConfigText, string])[] = [
  [
    "this machine's own address as the peer",
    vrrpConfig(0, { peer: ADDRESSES[0] }),
    `1: svc vrrp: vrrp.peer: ${
      ADDRESSES[0]
    } is an address of this machine: write the other node's own`,
  ],
  [
    "loopback",
    vrrpConfig(0, { interface: "lo" }),
    "1: svc vrrp: vrrp.interface: lo leads to no other node: name another",
  ],
  [
    "a user who is not there",
    { ...vrrpConfig(0), server: { listen: [`0.0.0.0:${DNS_PORT}`], user: "nobody-here" } },
    "1: svc vrrp: server.user: there is no user nobody-here: make it, or name another",
  ],
];

Deno.test("svc vrrp refuses what can't come to anything, with the mend", options, async (t) => {
  await using segment = await Segment.make();
  await using files = await NodeFiles.make();
  for (const [what, config, want] of REFUSED) {
    await t.step(what, async () => {
      await using node = startVrrp(segment, 0, await files.write("0", config));
      assert.equal(await ends(node), want);
    });
  }
  await t.step("no [vrrp]", async () => {
    const file = await files.write("0", { server: { listen: ["127.0.0.1:1053"] } });
    await using node = startVrrp(segment, 0, file);
    assert.match(await ends(node), /^2: .*0\.toml: vrrp: is missing: write interface, address, /);
  });
  await t.step("no capabilities", async () => {
    const file = await files.write("0", vrrpConfig(0));
    const prefix = [...segment.on(0), "setpriv", "--bounding-set=-net_raw"];
    await using node = Running.start(svcCommand(["vrrp", "--config", file]), { prefix });
    assert.equal(
      await ends(node),
      "1: svc vrrp: needs CAP_NET_RAW and CAP_NET_ADMIN: start it by svc-vrrp.service or as root",
    );
  });
  await t.step("--status of what does not run", async () => {
    const file = await files.write("0", vrrpConfig(0));
    const command = svcCommand(["vrrp", "--status", "--config", file]);
    await using node = Running.start(command, { prefix: segment.on(0) });
    assert.match(await ends(node), /^1: svc vrrp: nothing runs here for 192\.168\.77\.100: /);
  });
});

/** Somebody who is on every Debian, with nothing of their own. */
const NOBODY = "65534";
const AS_NOBODY = [
  "setpriv",
  `--reuid=${NOBODY}`,
  `--regid=${NOBODY}`,
  "--clear-groups",
  "--inh-caps=+net_raw,+net_admin",
  "--ambient-caps=+net_raw,+net_admin",
];

Deno.test(
  "svc vrrp becomes a user with CAP_NET_ADMIN alone, however it is started",
  options,
  async (t) => {
    await using segment = await Segment.make();
    await using files = await NodeFiles.make();
    await Deno.chmod(files.directory, 0o777);
    await using _dns = await startHealthy(segment, files, 0);
    const base = vrrpConfig(0);
    const starts: readonly (readonly [string, readonly string[], ConfigText])[] = [
      ["as root, with server.user", [], {
        ...base,
        server: { listen: [`0.0.0.0:${DNS_PORT}`], user: "nobody" },
      }],
      ["as the user, with ambient capabilities", AS_NOBODY, base],
    ];
    for (const [what, prefix, config] of starts) {
      // What the built file extracts as root is root's alone.
      if (PROGRAM !== undefined && prefix.length === 0) continue;
      await t.step(what, async () => {
        const file = await files.write("0", config);
        await Deno.chmod(file, 0o644);
        const env = {
          DENO_DIR: `${files.directory}/deno`,
          SVC_CACHE_DIR: `${files.directory}/cache`,
          HOME: "/nonexistent",
        };
        await using node = Running.start(svcCommand(["vrrp", "--config", file]), {
          prefix: [...segment.on(0), ...prefix],
          env,
        });
        await node.logged("holding the address");
        const script = `cat /proc/${node.pid}/task/*/status |
        grep -E '^(Uid|Gid|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|SigBlk):' | sort -u`;
        const { stdout } = await runProgram("sh", "-c", script);
        const all = `${NOBODY}\t`.repeat(4).trim();
        const sets = ["Amb", "Eff", "Inh", "Prm"].map((set) => `Cap${set}:\t0000000000001000`);
        // SIGUSR1 is blocked: the runtime would open its debugger at it. Orders, SIGTERM say, reach
        // the thread that listens.
        const rest = [
          `Gid:\t${all}`,
          "NoNewPrivs:\t1",
          "SigBlk:\t0000000000000200",
          "SigBlk:\t0000000000004a03",
          `Uid:\t${all}`,
        ];
        assert.deepEqual(stdout.trim().split("\n"), [...sets, ...rest]);
        await node.end("SIGTERM");
        assert.deepEqual(await segment.holders(), []);
      });
    }
  },
);
