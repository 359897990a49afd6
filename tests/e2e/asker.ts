/** Many questions over UDP, at once and from any address: what thousands of verdicts need. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createSocket } from "node:dgram";
import { formatIp, type HostPort } from "../../src/addr/mod.ts";
import { encodeQuery, type Message, Qtype, Rcode } from "../../src/dns/mod.ts";
import { decode, nextId } from "./clients.ts";
import { WAIT_MS_MAX } from "./harness.ts";

/** Questions on their way at a time: well below what a socket's buffer holds. */
const AT_ONCE = 128;

export interface Question {
  readonly name: string;
  /** A if left out. */
  readonly type?: keyof typeof Qtype;
}

/** What an answer is, as a client that uses EDNS can tell. */
export interface Answer {
  readonly name: string;
  /** `NOERROR`, `NXDOMAIN`, …, or the number of another. */
  readonly rcode: string;
  /** Each record: type and data, as `A 192.0.2.1`. */
  readonly records: readonly string[];
  /** MINIMUM of the SOA of a negative answer. */
  readonly negativeTtl: number | null;
  /** TTL of the first record. */
  readonly ttl: number | null;
  /** The extended error: its code, and its text. */
  readonly ede: number | null;
  readonly text: string;
}

const NAMES_OF = (table: Readonly<Record<string, number>>) =>
  new Map(Object.entries(table).map(([name, code]) => [code, name]));
const TYPES = NAMES_OF(Qtype);
const RCODES = NAMES_OF(Rcode);

function read(name: string, message: Message): Answer {
  const { rcode, answers, authorities, opt } = message;
  const soa = authorities.find(({ type }) => type === Qtype.SOA);
  const [error] = opt?.errors ?? [];
  return {
    name,
    rcode: RCODES.get(rcode)?.toUpperCase() ?? String(rcode),
    records: answers.map(({ type, data }) => `${TYPES.get(type) ?? type} ${data}`),
    negativeTtl: soa === undefined ? null : Number(soa.data.split(" ").at(-1)),
    ttl: answers.at(0)?.ttl ?? null,
    ede: error?.code ?? null,
    text: error?.text ?? "",
  };
}

/** A client with an address of its own. */
export class Asker {
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #socket;

  private constructor(readonly server: HostPort) {
    this.#socket = createSocket(server.ip.length === 4 ? "udp4" : "udp6");
    this.#socket.on("message", (packet: Uint8Array) => {
      const message = decode(packet);
      const done = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      done?.(message);
    });
  }

  /** A client at an address of loopback. */
  static async open(server: HostPort, from = "127.0.0.1"): Promise<Asker> {
    const asker = new Asker(server);
    await new Promise<void>((resolve, reject) => {
      asker.#socket.once("error", reject);
      asker.#socket.bind(0, from, () => resolve());
    });
    return asker;
  }

  /** Asks with EDNS. */
  async ask(name: string, type: keyof typeof Qtype = "A"): Promise<Answer> {
    const id = nextId();
    const { promise, resolve, reject } = Promise.withResolvers<Message>();
    const late = () => reject(new Error(`${name} ${type}: no answer within ${WAIT_MS_MAX} ms`));
    const timer = setTimeout(late, WAIT_MS_MAX);
    this.#waiting.set(id, resolve);
    const packet = encodeQuery(name, Qtype[type], { id, edns: {} });
    this.#socket.send(Buffer.from(packet), this.server.port, formatIp(this.server.ip));
    const message = await promise.finally(() => clearTimeout(timer));
    assert.equal(message.questions[0].name.toLowerCase(), name.toLowerCase().replace(/\.$/, ""));
    return read(name, message);
  }

  /** Asks many questions; the answers in their order. */
  async askAll(questions: readonly Question[]): Promise<Answer[]> {
    const answers: Answer[] = [];
    for (let i = 0; i < questions.length; i += AT_ONCE) {
      const some = questions.slice(i, i + AT_ONCE);
      answers.push(...await Promise.all(some.map(({ name, type }) => this.ask(name, type))));
    }
    return answers;
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}

/** An answer in short, as the rows of tests have it. */
export function brief({ rcode, records, negativeTtl, ede, text }: Answer): string {
  const parts = [rcode, ...records];
  if (negativeTtl !== null) parts.push(`SOA ${negativeTtl}`);
  if (ede !== null) parts.push(text === "" ? `EDE ${ede}` : `EDE ${ede} ${text}`);
  return parts.join("; ");
}
