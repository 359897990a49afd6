// Goal: who is no member gets nowhere, and takes nothing from members. Method: strangers of every
// kind against a real channel.
import assert from "node:assert/strict";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { freePort } from "../../../tests/free_port.ts";
import { Prng } from "../../../tests/prng.ts";
import { greetingOf, TestAuthority, TestMember, until } from "./fakes.ts";
import { encodeGreeting } from "./greeting.ts";
import { LIMITS } from "./limits.ts";
import type { Refusal } from "./listener.ts";
import { MessageReader, MessageType, writeMessage } from "./messages.ts";

const local = { permissions: { net: true, read: true, write: true, sys: true } } as const;
const authority = await TestAuthority.make();
const other = await TestAuthority.make();
const QUICK = { tickMs: 20, retryMsMin: 5, retryMsMax: 40 };
/** An address of loopback that is no member's. */
const STRANGER = "127.0.0.9";

function portsOf(...nodes: string[]): Record<string, number> {
  return Object.fromEntries(nodes.map((node) => [node, freePort()]));
}

/** Resolves when the other side has ended a connection; with what it sent until then. */
function ended(socket: Socket | TLSSocket): Promise<Uint8Array> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  const chunks: Uint8Array[] = [];
  socket.on("data", (chunk: Uint8Array) => chunks.push(chunk.slice()));
  socket.on("error", () => {});
  socket.on("end", () => socket.destroy());
  socket.on("close", () => resolve(new Uint8Array(chunks.flatMap((chunk) => [...chunk]))));
  return promise;
}

async function tls(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connectTls({
    ...{ host: "127.0.0.1", port, servername: "node1", ca: authority.cert },
    ...options,
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on("secureConnect", () => resolve());
  socket.on("error", () => resolve());
  socket.on("close", () => resolve());
  await promise;
  return socket;
}

Deno.test("Listener refuses and counts who is no member", local, async (t) => {
  const ports = portsOf("node1", "node2");
  await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
  const pair = await authority.issue("node2");
  const refused = async (reason: Refusal, end: Promise<unknown>) => {
    const before = one.channel.figures.refused[reason];
    await end;
    await until(`${reason} is counted`, () => one.channel.figures.refused[reason] === before + 1);
    assert.equal(one.channel.figures.unfinished, 0);
  };
  await t.step("plain TCP", async () => {
    const socket = connectTcp({ host: "127.0.0.1", port: one.port });
    socket.write("GET / HTTP/1.1\r\nHost: node1\r\n\r\n");
    await refused("tls", ended(socket));
  });
  await t.step("TLS 1.2", async () => {
    await refused("tls", tls(one.port, { ...pair, maxVersion: "TLSv1.2" }));
  });
  await t.step("no certificate", async () => {
    await refused("tls", tls(one.port, {}));
  });
  await t.step("a certificate of another CA", async () => {
    await refused("tls", tls(one.port, await other.issue("node2")));
  });
  await t.step("the CA's own", async () => {
    await refused("tls", tls(one.port, authority.pair));
  });
  await t.step("one that is not valid any more", async () => {
    const past = Date.now() - 11 * 365.25 * 86_400_000;
    await refused("tls", tls(one.port, await authority.issue("node2", past)));
  });
  await t.step("a name that is not known, which is told so", async () => {
    const socket = await tls(one.port, await authority.issue("node9"));
    const said: string[] = [];
    const end = ended(socket).then((bytes) =>
      new MessageReader(() => true, (type, payload) => {
        said.push(`${type} ${new TextDecoder().decode(payload)}`);
        return true;
      }).read(bytes)
    );
    await refused("unknown", end);
    assert.deepEqual(said, [`${MessageType.Refusal} unknown`]);
  });
  await t.step("this member's own name", async () => {
    await refused("unknown", tls(one.port, await authority.issue("node1")).then(ended));
  });
  await t.step("a member that greets with what is no message", async () => {
    const socket = await tls(one.port, pair);
    socket.write("GET / HTTP/1.1\r\n\r\n");
    await refused("greeting", ended(socket));
  });
  await t.step("a member that sends a frame before its greeting", async () => {
    const socket = await tls(one.port, pair);
    socket.write(writeMessage(MessageType.Frame, new Uint8Array(10)));
    await refused("greeting", ended(socket));
    assert.deepEqual(one.frames, []);
  });
  await t.step("a member of another form, which is told this one's", async () => {
    const socket = await tls(one.port, pair);
    const greeting = JSON.stringify({ protocol: 2, version: "9.0.0" });
    socket.write(writeMessage(MessageType.Greeting, new TextEncoder().encode(greeting)));
    await refused("greeting", ended(socket));
    assert.match(one.peer("node2").incompatible ?? "", /^speaks form 2 of the channel \(version 9/);
  });
});

Deno.test("Listener ends who takes too long, at every step", local, async (t) => {
  const ports = portsOf("node1", "node2");
  const limits = { ...QUICK, handshakeMs: 60 };
  await using one = await TestMember.start({ node: "node1", authority, ports, limits });
  const pair = await authority.issue("node2");
  const slow = async (end: Promise<unknown>) => {
    const before = one.channel.figures.refused.slow;
    await end;
    assert.equal(one.channel.figures.refused.slow, before + 1);
    assert.equal(one.channel.figures.unfinished, 0);
  };
  await t.step("nothing at all", async () => {
    await slow(ended(connectTcp({ host: "127.0.0.1", port: one.port })));
  });
  await t.step("half a handshake", async () => {
    const socket = connectTcp({ host: "127.0.0.1", port: one.port });
    socket.write(new Uint8Array([22, 3, 1, 1, 0, 1, 0]));
    await slow(ended(socket));
  });
  await t.step("a handshake and no greeting", async () => {
    await slow(ended(await tls(one.port, pair)));
  });
  await t.step("half a greeting, a byte at a time", async () => {
    const socket = await tls(one.port, pair);
    const message = writeMessage(MessageType.Greeting, encodeGreeting(greetingOf(), "frames"));
    let sent = 0;
    const drip = setInterval(() => void socket.write(message.subarray(sent, ++sent)), 10);
    await slow(ended(socket));
    clearInterval(drip);
  });
});

Deno.test("bad attempts end within five seconds", { permissions: "none" }, () => {
  assert.ok(LIMITS.handshakeMs < 5_000);
});

Deno.test("Listener lets members in whatever a stranger opens", local, async () => {
  const ports = portsOf("node1", "node2");
  await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
  const open = (localAddress: string) => {
    const socket = connectTcp({ host: "127.0.0.1", port: one.port, localAddress });
    return { socket, end: ended(socket) };
  };
  // From an address of no member's, and as many as may be held from a member's own.
  const strangers = Array.from({ length: 300 }, () => open(STRANGER));
  const own = Array.from({ length: 300 }, () => open("127.0.0.1"));
  await until("a flood is counted", () => one.channel.figures.refused.flood > 300);
  assert.ok(one.channel.figures.unfinished < 300, `${one.channel.figures.unfinished}`);
  await using two = await TestMember.start({ node: "node2", authority, ports, limits: QUICK });
  await one.connected("node2");
  await two.connected("node1");
  two.send("node1", "through");
  await until("frames pass", () => one.frames.length === 1);
  for (const { socket } of [...strangers, ...own]) socket.destroy();
  await Promise.all([...strangers, ...own].map(({ end }) => end));
});

Deno.test("Incoming ends a member that falls silent, or never ends a message", local, async (t) => {
  const ports = portsOf("node1", "node2");
  const limits = { ...QUICK, messageTicksMax: 6 };
  await using one = await TestMember.start({ node: "node1", authority, ports, limits });
  const pair = await authority.issue("node2");
  const greet = async () => {
    const socket = await tls(one.port, pair);
    socket.write(writeMessage(MessageType.Greeting, encodeGreeting(greetingOf(), "frames")));
    await until("it is greeted", () => one.peer("node2").greeting !== null);
    return socket;
  };
  await t.step("silence", async () => {
    await ended(await greet());
  });
  await t.step("a message without an end", async () => {
    const socket = await greet();
    const message = writeMessage(MessageType.Frame, new Uint8Array(1 << 20));
    let sent = 0;
    const drip = setInterval(() => void socket.write(message.subarray(sent, ++sent)), 5);
    await ended(socket);
    clearInterval(drip);
    assert.deepEqual(one.frames, []);
  });
  await t.step("the newer of two connections is the one that counts", async () => {
    const first = await greet();
    const end = ended(first);
    const second = await greet();
    await end;
    second.write(writeMessage(MessageType.Frame, new TextEncoder().encode("newer")));
    await until("its frame comes", () => one.frames.length === 1);
    second.destroy();
  });
});

Deno.test("Incoming leaves a member its place when a second node has its name", local, async () => {
  const ports = portsOf("node1", "node2");
  await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
  const pair = await authority.issue("node2");
  const greet = async (memberId: string, localAddress: string) => {
    const way = connectTcp({ host: "127.0.0.1", port: one.port, localAddress });
    const socket = await tls(one.port, { ...pair, socket: way });
    const end = ended(socket);
    socket.write(
      writeMessage(MessageType.Greeting, encodeGreeting(greetingOf({ memberId }), "frames")),
    );
    return { socket, end };
  };
  const member = await greet("node2.1", "127.0.0.1");
  await until("it is greeted", () => one.peer("node2").greeting?.memberId === "node2.1");
  const ping = setInterval(() => {
    member.socket.write(writeMessage(MessageType.Ping, new Uint8Array(0)));
  }, QUICK.tickMs);
  const second = await greet("node2.2", STRANGER);
  assert.deepEqual(
    await second.end,
    writeMessage(MessageType.Refusal, new TextEncoder().encode("taken")),
  );
  assert.equal(one.peer("node2").greeting?.memberId, "node2.1", "what it says counts for nothing");
  assert.match(one.channel.problems.join(), /node2 connects from 127\.0\.0\.9 as well/);
  member.socket.write(writeMessage(MessageType.Frame, new TextEncoder().encode("still here")));
  await until("its frames pass", () => one.frames.length === 1);
  clearInterval(ping);
  member.socket.destroy();
  await member.end;
  await until("it is not told of any more", () => one.channel.problems.length === 0);
  const alone = await greet("node2.2", STRANGER);
  await until("where the member is gone", () => one.peer("node2").greeting?.memberId === "node2.2");
  alone.socket.destroy();
  await alone.end;
});

Deno.test("Listener and Incoming come through whatever bytes come", local, async () => {
  const ports = portsOf("node1", "node2");
  const limits = { ...QUICK, handshakeMs: 500 };
  await using one = await TestMember.start({ node: "node1", authority, ports, limits });
  const pair = await authority.issue("node2");
  const prng = new Prng(7);
  const said = new Uint8Array([
    ...writeMessage(MessageType.Greeting, encodeGreeting(greetingOf(), "frames")),
    ...writeMessage(MessageType.Ping, new Uint8Array()),
    ...writeMessage(MessageType.Frame, new TextEncoder().encode("a frame")),
  ]);
  for (let round = 0; round < 60; round++) {
    const socket = await tls(one.port, pair);
    const end = ended(socket);
    const bytes = said.slice(0, prng.int(said.length + 1));
    for (let i = prng.int(4); i >= 0 && bytes.length > 0; i--) {
      bytes[prng.int(bytes.length)] = prng.int(256);
    }
    socket.write(bytes);
    socket.write(prng.bytes(prng.int(100)));
    socket.end();
    await end;
  }
  for (let round = 0; round < 60; round++) {
    const socket = connectTcp({ host: "127.0.0.1", port: one.port });
    const end = ended(socket);
    socket.end(prng.bytes(prng.int(600)));
    await end;
  }
  await using two = await TestMember.start({ node: "node2", authority, ports, limits });
  await one.connected("node2");
  await two.connected("node1");
  assert.equal(one.channel.figures.unfinished, 0);
});

Deno.test("Outgoing goes to nobody but the member it means", local, async (t) => {
  const ports = portsOf("node1", "node2");
  await t.step("another member at its address", async () => {
    await using three = await TestMember.start({
      node: "node3",
      authority,
      ports: { ...ports, node3: ports.node2 },
      limits: QUICK,
    });
    await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
    await until("it says so", () => /another member/.test(one.peer("node2").fault ?? ""));
    assert.equal(one.peer("node2").greeting, null);
    assert.deepEqual(three.frames, []);
  });
  await t.step("a member that does not know this one", async () => {
    await using _two = await TestMember.start({
      node: "node2",
      authority,
      ports: { node2: ports.node2 },
      limits: QUICK,
    });
    await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
    await until("it says so", () => /does not know/.test(one.peer("node2").fault ?? ""));
    assert.deepEqual(one.told, []);
  });
  await t.step("what is no TLS", async () => {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: ports.node2 });
    void (async () => {
      for await (const conn of listener) {
        await conn.write(new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n"));
        conn.close();
      }
    })();
    await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
    await until("it says so", () => /TLS|secure/.test(one.peer("node2").fault ?? ""));
    listener.close();
  });
});
