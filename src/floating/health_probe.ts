import type { HostPort } from "../addr/mod.ts";
import { Received, UdpEphemeral } from "../native/mod.ts";
import { healthQuery, isHealthy } from "./health_query.ts";
import type { Libc } from "./sockets.ts";

/** A check a second, come what may. */
const CHECK_MS = 1_000;
/** How long an answer may take: a node that is slower does not answer. */
const ANSWER_MS = 500;
/**
 * The query is sent again meanwhile, after this and each time twice as long: a packet that is lost in
 * a full queue is no failed check, and one that a server took with it when it ended tells nothing.
 */
const AGAIN_MS = 20;
/** Where nobody listens, the next checks need not wait: so many are made one after the other. */
const REFUSED_MS = 20;
const REFUSED_MAX = 3;
const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC_NONBLOCK = 0o2004000;
const LOOPBACK_4 = new Uint8Array([127, 0, 0, 1]);
const RESPONSE_BYTES = 1_232;
/** Wrong answers to one query; who can send them here has the machine already. */
const ANSWERS_MAX = 8;

type Result = "good" | "failed" | "refused";

/** What the probe is handed. */
export interface ProbePorts {
  /** Has `onReadable` called when the socket can be read, until the socket is closed. */
  watch(fd: number, onReadable: () => void): void;
  /** What a check came to; false only if nothing right was answered in time. */
  onResult(isGood: boolean): void;
}

/**
 * Asks this node's own DNS each second, over UDP as clients do. Beside that it holds a TCP
 * connection on which it asks nothing: when the server ends, so does the connection, and a check is
 * made at once. A connection closed for another reason costs one check too many.
 */
export class HealthProbe {
  readonly #libc: Libc;
  readonly #sockets: UdpEphemeral;
  readonly #target: HostPort;
  readonly #ports: ProbePorts;
  readonly #checkMs: number;
  #udp = -1;
  #query: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #sinceMs = 0;
  #againMs = AGAIN_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #tcp = -1;
  #tcpTriedAtMs = -Infinity;
  #refused = 0;
  #isStopped = false;
  readonly #response = new Uint8Array(RESPONSE_BYTES);

  constructor(libc: Libc, target: HostPort, ports: ProbePorts, checkMs = CHECK_MS) {
    this.#libc = libc;
    this.#sockets = new UdpEphemeral(libc.native);
    this.#target = target;
    this.#ports = ports;
    this.#checkMs = checkMs;
  }

  /** Makes a check now, and one each second from now on. */
  start(): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#closeUdp();
    this.#sinceMs = performance.now();
    this.#connectTcp();
    this.#udp = this.#open(SOCK_DGRAM);
    if (this.#udp < 0) return this.#finish("failed");
    this.#query = healthQuery(crypto.getRandomValues(new Uint16Array(1))[0]);
    this.#againMs = AGAIN_MS;
    this.#ports.watch(this.#udp, () => void this.#onUdp());
    this.#send();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#closeUdp();
    this.#closeTcp();
  }

  /**
   * A socket to the server, or -1. An IPv4 one comes from loopback, which every access rule lets pass
   * and no limit counts, also to another address of this machine.
   */
  #open(kind: number): number {
    const { native } = this.#libc;
    const { ip } = this.#target;
    const isV4 = ip.length === 4;
    const fd = native.socket(isV4 ? AF_INET : AF_INET6, kind | SOCK_CLOEXEC_NONBLOCK, 0);
    if (fd < 0) return -1;
    const remote = UdpEphemeral.remote(this.#target);
    const local = UdpEphemeral.remote({ ip: LOOPBACK_4, port: 0 });
    const isBound = !isV4 || native.bind(fd, local, local.length) === 0;
    // A TCP connection takes its time; one that is refused shows like one that has ended.
    const isMade = isBound && native.connect(fd, remote, remote.length) === 0;
    if (isMade || (isBound && kind === SOCK_STREAM)) return fd;
    native.close(fd);
    return -1;
  }

  #connectTcp(): void {
    if (this.#tcp >= 0 || this.#sinceMs - this.#tcpTriedAtMs < this.#checkMs) return;
    this.#tcpTriedAtMs = this.#sinceMs;
    this.#tcp = this.#open(SOCK_STREAM);
    if (this.#tcp >= 0) this.#ports.watch(this.#tcp, () => this.#onTcp());
  }

  #onTcp(): void {
    if (this.#tcp < 0) return;
    const length = this.#sockets.receive(this.#tcp, this.#response);
    if (length === Received.Nothing) return;
    this.#closeTcp();
    this.start();
  }

  #send(): void {
    this.#sockets.send(this.#udp, this.#query, this.#query.length);
    const leftMs = ANSWER_MS - (performance.now() - this.#sinceMs);
    this.#timer = setTimeout(() => this.#onTime(), Math.max(0, Math.min(this.#againMs, leftMs)));
    this.#againMs *= 2;
  }

  #onTime(): void {
    // This process may have been the late one, and the answer be there.
    if (this.#onUdp()) return;
    if (performance.now() - this.#sinceMs < ANSWER_MS) this.#send();
    else this.#finish("failed");
  }

  /** Reads what has come; true, if the check is over. */
  #onUdp(): boolean {
    for (let i = 0; i < ANSWERS_MAX && this.#udp >= 0; i++) {
      const length = this.#sockets.receive(this.#udp, this.#response);
      if (length === Received.Nothing) return false;
      if (length === Received.Refused) this.#finish("refused");
      else if (isHealthy(this.#response.subarray(0, length), this.#query)) this.#finish("good");
    }
    return this.#udp < 0;
  }

  #finish(result: Result): void {
    this.#closeUdp();
    clearTimeout(this.#timer);
    this.#refused = result === "refused" ? this.#refused + 1 : 0;
    const isSoon = this.#refused > 0 && this.#refused < REFUSED_MAX;
    const dueMs = isSoon ? REFUSED_MS : this.#sinceMs + this.#checkMs - performance.now();
    this.#timer = setTimeout(() => this.start(), Math.max(0, dueMs));
    this.#ports.onResult(result === "good");
  }

  #closeUdp(): void {
    if (this.#udp >= 0) this.#sockets.close(this.#udp);
    this.#udp = -1;
  }

  #closeTcp(): void {
    if (this.#tcp >= 0) this.#sockets.close(this.#tcp);
    this.#tcp = -1;
  }
}
