/**
 * The servers of a scenario, at their own addresses and port, and its client:
 * `scenario_child.ts FILE CLOCK OFFSET`. Says `ready` once it serves, reads the port of the resolver to
 * ask, and ends with the differences as JSON. CLOCK is the resolver's, which is OFFSET seconds off.
 */
import { decodeHex, getU16, setU16 } from "../../src/bytes/mod.ts";
import { decodeMessage, encodeQuery, formatName, parseName, TC_BIT } from "../../src/dns/mod.ts";
import { FrameReader } from "../../src/transport/mod.ts";
import { answerOf, differenceOf } from "../replay/played.ts";
import { addressesOf, configValues, parseScenario, type RplEntry } from "../replay/rpl.ts";
import { framed, nextId, TcpClient } from "./clients.ts";
import { FakeClock, offsetText } from "./fake_clock.ts";

const DNS_PORT = 53;
/** What has no more room over UDP is asked for over TCP. */
const UDP_BYTES_MAX = 1_232;

if (import.meta.main) {
  const [file, clock, offset] = Deno.args;
  const scenario = parseScenario(await Deno.readTextFile(file));
  let step = 0;

  const answer = (address: string, tcp: boolean, packet: Uint8Array): Uint8Array[] => {
    const message = decodeMessage(packet);
    if (message === null || message.questions.length !== 1) return [];
    const [{ name, type }] = message.questions;
    return answerOf(scenario, step, { address, tcp, packet, wireName: parseName(name)!, type });
  };
  const serveUdp = async (hostname: string) => {
    const socket = Deno.listenDatagram({ transport: "udp", hostname, port: DNS_PORT });
    for await (const [packet, from] of socket) {
      for (const message of answer(hostname, false, packet)) {
        const isCut = message.length > UDP_BYTES_MAX;
        await socket.send(isCut ? cut(message) : message, from);
      }
    }
  };
  const serveTcp = async (hostname: string) => {
    for await (const connection of Deno.listen({ hostname, port: DNS_PORT })) {
      void serveConnection(connection, (packet) => answer(hostname, true, packet));
    }
  };
  for (const address of addressesOf(scenario)) {
    void serveUdp(address);
    void serveTcp(address);
  }
  console.log("ready");
  const port = Number(new TextDecoder().decode(await readLine()));

  const ask = async ({ question, reply }: RplEntry) => {
    const has = (flag: string) => reply.includes(flag);
    const flags = { rd: has("RD"), ad: has("AD"), cd: has("CD"), id: nextId() };
    const edns = has("DO") ? { edns: { dnssecOk: true } } : {};
    using client = await TcpClient.connect({ ip: Uint8Array.of(127, 0, 0, 1), port });
    await client.send(encodeQuery(question!.name, question!.type, { ...flags, ...edns }));
    return await client.message();
  };
  const isValidated = configValues(scenario, "trust-anchor").length > 0;
  const different: string[] = [];
  let passedS = 0;
  let last: { entry: RplEntry; message: Awaited<ReturnType<typeof ask>> } | null = null;
  for (const { id, kind, entry, elapseS } of scenario.steps) {
    step = id;
    if (kind === "TIME_PASSES") {
      passedS += elapseS;
      await FakeClock.make(clock, offsetText(Number(offset) + passedS));
    }
    if (kind === "QUERY" && entry!.raw !== null) await sendRaw(port, entry!.raw);
    else if (kind === "QUERY") last = { entry: entry!, message: await ask(entry!) };
    if (kind !== "CHECK_ANSWER" || last === null) continue;
    const problem = differenceOf(last.entry, last.message, entry!, isValidated);
    if (problem !== null) {
      different.push(`step ${id}, ${formatName(last.entry.question!.name)}: ${problem}`);
    }
  }
  console.log(JSON.stringify(different));
  Deno.exit(0);
}

/** Sends a packet of any kind; nobody wants to know what comes of it. */
async function sendRaw(port: number, hex: string): Promise<void> {
  const socket = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
  await socket.send(decodeHex(hex)!, { transport: "udp", hostname: "127.0.0.1", port });
  socket.close();
}

/** Header and question alone, with TC. */
function cut(message: Uint8Array): Uint8Array {
  let end = 12;
  while (message[end] !== 0) end += 1 + message[end];
  const head = message.slice(0, end + 5);
  setU16(head, 2, getU16(head, 2) | TC_BIT);
  head.fill(0, 6, 12);
  return head;
}

async function serveConnection(
  connection: Deno.Conn,
  answer: (packet: Uint8Array) => Uint8Array[],
): Promise<void> {
  using open = connection;
  const frames = new FrameReader();
  const chunk = new Uint8Array(4_096);
  try {
    for (let read = await open.read(chunk); read !== null; read = await open.read(chunk)) {
      frames.push(chunk.subarray(0, read));
      for (let frame = frames.next(); frame !== null; frame = frames.next()) {
        const bytes = framed(answer(frame.slice()));
        for (let sent = 0; sent < bytes.length;) sent += await open.write(bytes.subarray(sent));
      }
    }
  } catch {
    // The resolver has had enough.
  }
}

async function readLine(): Promise<Uint8Array> {
  const bytes = new Uint8Array(16);
  const count = await Deno.stdin.read(bytes);
  return bytes.subarray(0, count ?? 0);
}
