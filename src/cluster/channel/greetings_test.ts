// Goal: members know each other as what each said last, in whatever order that comes; or frames between
// them are dropped for good. Method: a real channel, and a member whose every byte the test says.
import assert from "node:assert/strict";
import { connect as connectTls, createServer, type Server, type TLSSocket } from "node:tls";
import { freePort } from "../../../tests/free_port.ts";
import type { Greeting } from "../ports.ts";
import { greetingOf, TestAuthority, TestMember, until } from "./fakes.ts";
import { decodeGreeting, encodeGreeting, type Purpose } from "./greeting.ts";
import { QUESTIONS_MAX } from "./limits.ts";
import { MessageReader, MessageType, writeMessage } from "./messages.ts";

const local = { permissions: { net: true, read: true, write: true, sys: true } } as const;
const authority = await TestAuthority.make();
const QUICK = { tickMs: 20, retryMsMin: 5, retryMsMax: 40 };
const TLS = { minVersion: "TLSv1.3" } as const;

const greetingMessage = (greeting: Greeting, purpose: Purpose = "frames") =>
  writeMessage(MessageType.Greeting, encodeGreeting(greeting, purpose));

/** Who plays node2: what node1 has told it of itself, and the connections that node1 made. */
class Scripted implements AsyncDisposable {
  readonly heard: string[] = [];
  readonly sockets: TLSSocket[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(port: number): Promise<Scripted> {
    const pair = await authority.issue("node2");
    const asked = { requestCert: true, rejectUnauthorized: true, ca: authority.cert };
    const server = createServer({ ...TLS, ...asked, ...pair });
    const scripted = new Scripted(server);
    server.on("secureConnection", (socket: TLSSocket) => scripted.#take(socket));
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    return scripted;
  }

  #take(socket: TLSSocket): void {
    const reader = new MessageReader(() => true, (type, payload) => {
      if (type !== MessageType.Greeting) return true;
      const read = decodeGreeting(payload);
      if (read.kind === "greeting") this.heard.push(read.greeting.clusterId);
      return true;
    });
    socket.on("data", (chunk: Uint8Array) => void reader.read(chunk));
    socket.on("error", () => {});
    this.sockets.push(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A connection of node2 to node1. */
async function connect(port: number): Promise<TLSSocket> {
  const pair = await authority.issue("node2");
  const to = { host: "127.0.0.1", port, servername: "node1", ca: authority.cert };
  const socket = connectTls({ ...TLS, ...to, ...pair });
  socket.on("error", () => {});
  socket.on("data", () => {});
  await new Promise<void>((resolve) => socket.on("secureConnect", () => resolve()));
  return socket;
}

/** Keeps a connection of frames from falling silent. */
function pinging(socket: TLSSocket): Disposable {
  const ping = () => socket.write(writeMessage(MessageType.Ping, new Uint8Array(0)));
  const timer = setInterval(ping, 10);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function pairOf() {
  const ports = { node1: freePort(), node2: freePort() };
  const two = await Scripted.start(ports.node2);
  const one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
  await until("node1 has connected", () => two.heard.length > 0);
  return { ports, one, two };
}

Deno.test("MemberChannel hears a greeting that comes right behind the first", local, async () => {
  const { one, two } = await pairOf();
  await using _ = one;
  await using __ = two;
  const both = ["before", "now"].flatMap((clusterId) => [
    ...greetingMessage(greetingOf({ clusterId })),
  ]);
  two.sockets[0].write(Uint8Array.from(both));
  await one.connected("node2");
  assert.equal(one.peer("node2").greeting?.clusterId, "now");
});

Deno.test("MemberChannel says anew what has changed while it was greeted", local, async () => {
  const { one, two } = await pairOf();
  await using _ = one;
  await using __ = two;
  assert.deepEqual(two.heard, [""]);
  one.channel.greet(greetingOf({ clusterId: "now" }));
  two.sockets[0].write(greetingMessage(greetingOf()));
  await until("node2 hears of it", () => two.heard.at(-1) === "now");
  assert.equal(two.sockets.length, 1, "on the same connection");
});

Deno.test("MemberChannel learns of no change by a question", local, async () => {
  const { ports, one, two } = await pairOf();
  await using _ = one;
  await using __ = two;
  const frames = await connect(ports.node1);
  frames.write(greetingMessage(greetingOf({ clusterId: "now" })));
  using _pings = pinging(frames);
  await until("it is greeted", () => one.peer("node2").greeting?.clusterId === "now");
  // It was on its way for longer than what was said since.
  const question = await connect(ports.node1);
  question.write(greetingMessage(greetingOf({ clusterId: "before" }), "question"));
  question.write(writeMessage(MessageType.Question, new Uint8Array(1)));
  await new Promise<void>((resolve) => question.on("close", () => resolve())); // It has no answer.
  frames.write(writeMessage(MessageType.Frame, new TextEncoder().encode("heard")));
  await until("the frame is heard", () => one.frames.length > 0);
  frames.destroy();
});

Deno.test(
  "MemberChannel ends a connection that stays behind what its member says",
  local,
  async () => {
    const { ports, one, two } = await pairOf();
    await using _ = one;
    await using __ = two;
    const frames = await connect(ports.node1);
    const ended = new Promise<void>((resolve) => frames.on("close", () => resolve()));
    frames.write(greetingMessage(greetingOf({ clusterId: "before" })));
    await until("it is greeted", () => one.peer("node2").greeting?.clusterId === "before");
    two.sockets[0].write(greetingMessage(greetingOf({ clusterId: "now" })));
    await until("it is told otherwise", () => one.peer("node2").greeting?.clusterId === "now");
    using _pings = pinging(frames);
    await ended; // Or every frame on it would be dropped for good.
  },
);

Deno.test("MemberChannel keeps no place for a question that is answered", local, async () => {
  const ports = { node1: freePort(), node2: freePort() };
  await using _two = await Scripted.start(ports.node2);
  let answered = 0;
  await using _one = await TestMember.start({
    ...{ node: "node1", authority, ports },
    limits: { ...QUICK, tickMs: 30_000 }, // So long who does not end it is waited for.
    onQuestion: () => {
      answered++;
      return Promise.resolve(new TextEncoder().encode("answer"));
    },
  });
  const sockets: TLSSocket[] = [];
  for (let i = 1; i <= QUESTIONS_MAX + 2; i++) {
    const socket = await connect(ports.node1);
    sockets.push(socket);
    socket.pause(); // It sees neither the answer nor the end.
    socket.write(greetingMessage(greetingOf(), "question"));
    socket.write(writeMessage(MessageType.Question, new Uint8Array(1)));
    await until(`question ${i} is asked`, () => answered === i);
  }
  for (const socket of sockets) socket.destroy();
});
