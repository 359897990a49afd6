import { formatIp } from "../addr/mod.ts";
import type { VrrpConfig } from "../config/mod.ts";
import { masterDownMs, type VrrpOptions, type VrrpState } from "../vrrp/mod.ts";
import type { Counters } from "./counters.ts";
import type { Libc } from "./sockets.ts";
import type { Watcher } from "../native/mod.ts";

const AF_UNIX = 1;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_CLOEXEC_NONBLOCK = 0o2004000;
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const SO_RCVTIMEO = 20;
const SO_SNDTIMEO = 21;
const MSG_DONTWAIT = 0x40;
const BACKLOG = 8;
/** Who asks is answered at once and let go; so many before other events get their turn. */
const ASKERS_MAX = 16;
const ANSWER_SECONDS_MAX = 2n;
const STATUS_BYTES_MAX = 4_096;

/** What a status is told from. */
export interface Situation {
  readonly config: VrrpConfig;
  readonly options: VrrpOptions;
  readonly state: VrrpState;
  readonly counters: Counters;
  /** Since when the node has had its role. */
  readonly sinceMs: number;
  readonly nowMs: number;
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

/** Who holds the address, and why: text for people and scripts. */
export function formatStatus(situation: Situation): string {
  const { config, options, state, counters, sinceMs, nowMs } = situation;
  const { peer, own } = state;
  const heardMs = peer === null ? Infinity : nowMs - peer.heardAtMs;
  const holds = peer !== null && peer.priority > 0 && heardMs < masterDownMs(options, state);
  const holder = state.role === "holder" ? "this node" : holds ? "the peer" : "nobody is heard of";
  const heard = peer === null
    ? "never heard"
    : `priority ${peer.priority}, heard ${seconds(heardMs)} ago`;
  const dropped = Object.entries(counters.dropped).map(([reason, count]) => `${reason} ${count}`);
  return [
    `address    ${formatIp(config.address)} on ${config.interface}, router ID ${config.routerId}`,
    `holder     ${holder}`,
    `role       ${state.role} for ${seconds(nowMs - sinceMs)}: ${state.reason}`,
    `this node  ${own === null ? "no link or no address" : formatIp(own)}, ` +
    `priority ${config.priority}, ${state.isHealthy ? "DNS answers" : "DNS does not answer"}`,
    `peer       ${formatIp(config.peer)}, ${heard}`,
    `counts     sent ${counters.sent}, received ${counters.received}, ` +
    `failed checks ${counters.failedChecks} of ${counters.checks}, ` +
    `take-overs ${counters.takeovers}`,
    `ignored    ${dropped.length === 0 ? "nothing" : dropped.join(", ")}`,
    "",
  ].join("\n");
}

/**
 * `sockaddr_un` of the status: a name without a file, known within the network namespace that the
 * address is in, and gone with the process.
 */
function statusSockaddr({ address, routerId }: VrrpConfig): Uint8Array<ArrayBuffer> {
  const name = new TextEncoder().encode(`svc-vrrp-${formatIp(address)}-${routerId}`);
  const sockaddr = new Uint8Array(3 + name.length);
  new DataView(sockaddr.buffer).setUint16(0, AF_UNIX, true);
  sockaddr.set(name, 3);
  return sockaddr;
}

/** Answers each who connects with a status; false, when the name is taken by somebody else. */
export function serveStatus(
  { native, packets }: Libc,
  watcher: Watcher,
  config: VrrpConfig,
  status: () => string,
): boolean {
  const fd = native.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC_NONBLOCK, 0);
  const sockaddr = statusSockaddr(config);
  if (fd < 0 || native.bind(fd, sockaddr, sockaddr.length) !== 0) return false;
  if (native.listen(fd, BACKLOG) !== 0) return false;
  watcher.watch(fd, () => {
    for (let i = 0; i < ASKERS_MAX; i++) {
      const asker = packets.accept4(fd, null, null, SOCK_CLOEXEC_NONBLOCK);
      if (asker < 0) return;
      const text = new TextEncoder().encode(status());
      native.send(asker, text, BigInt(text.length), MSG_DONTWAIT);
      native.close(asker);
    }
  });
  return true;
}

/** Asks the running `svc vrrp` of this configuration; `null`: none answers. */
export function askStatus({ native, packets }: Libc, config: VrrpConfig): string | null {
  const fd = native.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval = new Uint8Array(BigInt64Array.of(ANSWER_SECONDS_MAX, 0n).buffer);
  native.setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, timeval, timeval.length);
  native.setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, timeval, timeval.length);
  const sockaddr = statusSockaddr(config);
  try {
    if (native.connect(fd, sockaddr, sockaddr.length) !== 0) return null;
    const answer = new Uint8Array(STATUS_BYTES_MAX);
    const length = Number(native.recv(fd, answer, BigInt(answer.length), 0));
    if (length <= 0) return null;
    const [pid, uid] = peerOf({ native, packets }, fd);
    // The name is anybody's who takes it first, so the text is looked at, and its author named.
    const text = new TextDecoder().decode(answer.subarray(0, length)).replace(/[^\P{Cc}\n]/gu, "?");
    return `${text}told by    process ${pid} of user ${uid}\n`;
  } finally {
    native.close(fd);
  }
}

function peerOf({ packets }: Libc, fd: number): readonly [pid: number, uid: number] {
  const credentials = new Uint32Array(3);
  const length = new Uint8Array(new Uint32Array([credentials.byteLength]).buffer);
  packets.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, new Uint8Array(credentials.buffer), length);
  return [credentials[0], credentials[1]];
}
