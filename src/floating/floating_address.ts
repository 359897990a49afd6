import { formatIp, type HostPort } from "../addr/mod.ts";
import { equalBytes } from "../bytes/mod.ts";
import type { VrrpConfig } from "../config/mod.ts";
import { log, type LogFields } from "../log.ts";
import {
  type DropReason,
  type Effect,
  type Event,
  initialState,
  nextDueMs,
  readAdvertisement,
  type Role,
  step,
  VRRP_GROUP,
  type VrrpOptions,
  type VrrpState,
  writeAdvertisement,
} from "../vrrp/mod.ts";
import { ARP_FORMS, type ArpForm, broadcastTo, gratuitousArp } from "./arp.ts";
import { Counters } from "./counters.ts";
import { HealthProbe } from "./health_probe.ts";
import { KernelTables } from "./kernel_tables.ts";
import { type InterfaceAddress, type LinkFacts, News, openNetlink } from "../netlink/mod.ts";
import { ownAddress } from "./own_address.ts";
import { joinGroup, type Libc, type RawSockets } from "./sockets.ts";
import { formatStatus, serveStatus } from "./status.ts";
import { VrrpSocket } from "./vrrp_socket.ts";
import { Watcher } from "../native/mod.ts";

/** The interface is looked at this often even if the kernel told nothing of it. */
const LOOK_MS = 1_000;
/** And this much apart, whatever it tells. */
const LOOK_MS_MIN = 50;
/** A status line, of what a metric would show. */
const STATUS_LINE_MS = 60_000;
/** A kind of ignored packets is said this often; all are counted. */
const DROP_LINE_MS = 60_000;
/** Lines about the role in such a time; a forger could have the node change it all the time. */
const ROLE_LINES_MAX = 20;
const ROLE_LINES_MS = 10_000;
/** Packets before other events get their turn. */
const PACKETS_MAX = 64;
/** News of the kernel's, which are only a reason to look. */
const NEWS_BYTES = 8 * 1024;
const NEWS_MAX = 256;
const MSG_DONTWAIT = 0x40;
/** `setTimeout` takes no more. */
const TIMER_MS_MAX = 60_000;

/** What becomes of the address when this program stops. */
export type Ending = "give up" | "hand on";

/** The interface as it is at a moment. */
interface View {
  readonly link: LinkFacts | null;
  readonly own: Uint8Array<ArrayBuffer> | null;
  readonly hasFloating: boolean;
}

const NO_VIEW: View = { link: null, own: null, hasFloating: false };

/** Moves the address: hands the state machine its events and does what it says. */
export class FloatingAddress {
  readonly #config: VrrpConfig;
  readonly #options: VrrpOptions;
  readonly #libc: Libc;
  readonly #sockets: RawSockets;
  readonly #vrrp: VrrpSocket;
  readonly #tables: KernelTables;
  readonly #watcher: Watcher;
  readonly #probe: HealthProbe;
  readonly #counters = new Counters();
  readonly #news: number;
  readonly #newsBytes = new Uint8Array(NEWS_BYTES);
  readonly #failed = Promise.withResolvers<never>();
  #state: VrrpState;
  #sinceMs: number;
  #view = NO_VIEW;
  /** The interface that has the address, as far as is known; it may bear another name by now. */
  #heldAt: number | null = null;
  #lookedAtMs = -Infinity;
  #dueTimer: ReturnType<typeof setTimeout> | undefined;
  #lookTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #dropLinesMs = new Map<DropReason, number>();
  #isPaceSaid = false;
  #roleLines = 0;
  #roleLinesFromMs = -Infinity;
  #unsaid = 0;

  /** `role`: the one to begin with, where it goes on for another program. */
  constructor(
    libc: Libc,
    sockets: RawSockets,
    config: VrrpConfig,
    target: HostPort,
    role: Role = "backup",
  ) {
    const { priority, preempt, intervalMs, peer } = config;
    this.#config = config;
    this.#options = { priority, preempt, intervalMs, peer };
    this.#libc = libc;
    this.#sockets = sockets;
    this.#vrrp = new VrrpSocket(libc, sockets.vrrp);
    this.#tables = new KernelTables(libc);
    this.#watcher = new Watcher(libc.native);
    this.#news = openNetlink(libc.native, News.Interfaces | News.Ipv4Addresses);
    this.#probe = new HealthProbe(libc, target, {
      watch: (fd, onReadable) => this.#watcher.watch(fd, () => this.#guard(onReadable)),
      onResult: (isGood) => this.#guard(() => this.#onHealth(isGood)),
    });
    this.#sinceMs = performance.now();
    this.#state = initialState(this.#sinceMs, role);
  }

  /**
   * Works until `stop`. The address is given up then, and also if anything fails, but where a next
   * program is to go on with what this one holds. Returns the role that is left to that.
   */
  async run(stop: Promise<Ending>): Promise<Role> {
    const { interface: device, peer, priority, unicast } = this.#config;
    log.info(this.#state.role === "holder" ? "going on as holder" : "standing by as backup", {
      reason: this.#state.reason,
      address: formatIp(this.#config.address),
      interface: device,
      priority,
      peer: formatIp(peer),
      unicast,
    });
    this.#watcher.watch(this.#sockets.vrrp, () => this.#guard(() => this.#receive()));
    this.#watcher.watch(this.#news, () => this.#guard(() => this.#hearNews()));
    if (!serveStatus(this.#libc, this.#watcher, this.#config, () => this.status)) {
      log.warn("another process tells the status of this address, as if svc vrrp ran twice");
    }
    const statusTimer = setInterval(() => this.logStatus(), STATUS_LINE_MS);
    const served = this.#watcher.run();
    let ending: Ending = "give up";
    try {
      this.#look();
      if (this.#view.link === null) this.#logMissing();
      this.#probe.start();
      const ended = await Promise.race([stop, served, this.#failed.promise]);
      if (ended === "hand on") ending = ended;
    } finally {
      clearInterval(statusTimer);
      clearTimeout(this.#lookTimer);
      this.#probe.stop();
      this.#watcher.stop();
      if (ending === "give up") this.#on({ type: "stop" });
      // From here on the peer waits for the next one as long as it ever does.
      else if (this.#state.role === "holder") this.#announce(this.#options.priority);
      clearTimeout(this.#dueTimer);
      this.logStatus();
    }
    return this.#state.role;
  }

  get status(): string {
    return formatStatus({
      config: this.#config,
      options: this.#options,
      state: this.#state,
      counters: this.#counters,
      sinceMs: this.#sinceMs,
      nowMs: performance.now(),
    });
  }

  /** A line with every count. */
  logStatus(): void {
    const { role, reason, isHealthy, own, peer } = this.#state;
    const { sent, sendFailures, received, checks, failedChecks, takeovers } = this.#counters;
    log.info("floating address", {
      role,
      reason,
      dns: isHealthy ? "good" : "bad",
      link: own === null ? "none" : "up",
      ...(peer !== null && { peer_priority: peer.priority }),
      ...{ sent, send_failures: sendFailures, received, dropped: this.#counters.dropped },
      ...{ checks, failed_checks: failedChecks, takeovers },
    });
  }

  /** Runs a part of the work; what it throws ends the whole, and the address is given up. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#failed.reject(error);
    }
  }

  #on(event: Event): void {
    const nowMs = performance.now();
    const before = this.#state;
    const { state, effects } = step(this.#options, before, event, nowMs);
    this.#state = state;
    if (state.role !== before.role) {
      this.#sinceMs = nowMs;
      const { role, reason } = state;
      this.#sayRole(role === "holder" ? "taking over" : "standing by as backup", { reason });
    }
    for (const effect of effects) {
      if (this.#do(effect)) continue;
      this.#on({ type: "refused" });
      return;
    }
    if (state.role === "holder" && before.role !== "holder") {
      this.#counters.takeovers++;
      const { address, interface: device } = this.#config;
      this.#sayRole("holding the address", { address: formatIp(address), interface: device });
    }
    this.#armDue();
  }

  #sayRole(message: string, fields: LogFields): void {
    const nowMs = performance.now();
    if (nowMs - this.#roleLinesFromMs >= ROLE_LINES_MS) {
      this.#roleLinesFromMs = nowMs;
      this.#roleLines = 0;
    }
    if (++this.#roleLines > ROLE_LINES_MAX) {
      this.#unsaid++;
      return;
    }
    log.info(message, { ...fields, ...(this.#unsaid > 0 && { unsaid: this.#unsaid }) });
    this.#unsaid = 0;
  }

  #armDue(): void {
    clearTimeout(this.#dueTimer);
    const inMs = nextDueMs(this.#options, this.#state) - performance.now();
    if (inMs === Infinity) return;
    this.#dueTimer = setTimeout(
      () =>
        this.#guard(() => {
          // What the peer has said comes first: this process may have been late to hear it.
          this.#receive();
          this.#on({ type: "tick" });
        }),
      Math.max(0, Math.min(inMs, TIMER_MS_MAX)),
    );
  }

  /** Does what the state machine says; false, if the address could not be added. */
  #do(effect: Effect): boolean {
    switch (effect.type) {
      case "hold":
        return this.#hold();
      case "release":
        this.#release();
        return true;
      case "announce":
        this.#announce(effect.priority);
        return true;
      case "claim":
        this.#claim(ARP_FORMS);
        return true;
      case "remind":
        this.#claim(ARP_FORMS.slice(0, 1));
        return true;
    }
  }

  #hold(): boolean {
    const { link } = this.#view;
    if (link === null) return false;
    const { address, prefixLengthBits } = this.#config;
    if (this.#heldAt !== null && this.#heldAt !== link.index) this.#release();
    const change = this.#tables.add({ index: link.index, address, prefixLengthBits });
    if (change === "done" || change === "as it was") {
      this.#heldAt = link.index;
      return true;
    }
    log.error("cannot add the address", { reason: change, interface: link.name });
    return false;
  }

  #release(): void {
    const index = this.#heldAt ?? this.#view.link?.index;
    this.#heldAt = null;
    if (index === undefined) return;
    // It is gone where the interface is, and stays on one that was renamed.
    const change = this.#tables.remove(index, this.#config.address);
    if (change === "done" || change === "as it was") return;
    log.error("cannot remove the address", { reason: change, interface: this.#config.interface });
  }

  #announce(priority: number): void {
    const { link, own } = this.#view;
    if (link === null || own === null) return;
    const { unicast, peer, intervalMs } = this.#config;
    const destination = unicast ? peer : VRRP_GROUP;
    const advertisement = { priority, intervalMs };
    const message = writeAdvertisement(advertisement, this.#config, own, destination);
    if (this.#vrrp.send(message, own, link.index, destination)) this.#counters.sent++;
    else this.#counters.sendFailures++;
  }

  #claim(forms: readonly ArpForm[]): void {
    const { link } = this.#view;
    if (link === null || link.mac === null) return;
    const to = broadcastTo(link.index);
    for (const form of forms) {
      const frame = gratuitousArp(form, link.mac, this.#config.address);
      const { packets } = this.#libc;
      packets.sendto(this.#sockets.arp, frame, BigInt(frame.length), MSG_DONTWAIT, to, to.length);
    }
  }

  #receive(): void {
    for (let i = 0; i < PACKETS_MAX; i++) {
      const received = this.#vrrp.receive();
      if (received === null) return;
      const { packet, index } = received;
      if (index !== this.#view.link?.index) {
        this.#drop("interface", packet);
        continue;
      }
      const reading = readAdvertisement(packet, this.#config);
      if (reading.kind === "dropped") {
        this.#drop(reading.reason, packet);
        continue;
      }
      this.#counters.received++;
      this.#comparePace(reading.advertisement.intervalMs);
      this.#on({ type: "advertisement", advertisement: reading.advertisement });
    }
  }

  #drop(reason: DropReason, packet: Uint8Array): void {
    const count = this.#counters.drop(reason);
    // Others may well use VRRP: on other interfaces, and under other IDs.
    if (reason === "interface" || reason === "router_id") return;
    const nowMs = performance.now();
    if (nowMs - (this.#dropLinesMs.get(reason) ?? -Infinity) < DROP_LINE_MS) return;
    this.#dropLinesMs.set(reason, nowMs);
    const source = packet.length < 16 ? undefined : formatIp(packet, 12, 4);
    log.warn("an announcement was ignored", { reason, source, count });
  }

  #comparePace(peerMs: number): void {
    const { intervalMs } = this.#config;
    if (peerMs === intervalMs || this.#isPaceSaid) return;
    this.#isPaceSaid = true;
    log.warn("the peer has another interval_ms: set the same on both nodes", {
      own: intervalMs,
      peer: peerMs,
    });
  }

  #onHealth(isGood: boolean): void {
    this.#counters.checks++;
    if (!isGood) this.#counters.failedChecks++;
    const before = this.#state.isHealthy;
    this.#on({ type: "health", isGood });
    const { isHealthy } = this.#state;
    if (isHealthy === before) return;
    if (isHealthy) log.info("DNS answers on this node");
    else log.warn("DNS does not answer on this node");
  }

  /** Empties the socket of news and has the interface looked at, not too often. */
  #hearNews(): void {
    const { native } = this.#libc;
    const size = BigInt(NEWS_BYTES);
    for (let i = 0; i < NEWS_MAX; i++) {
      if (Number(native.recv(this.#news, this.#newsBytes, size, MSG_DONTWAIT)) < 0) break;
    }
    const waitMs = this.#lookedAtMs + LOOK_MS_MIN - performance.now();
    if (waitMs <= 0) this.#look();
    else this.#armLook(waitMs);
  }

  #armLook(waitMs: number): void {
    clearTimeout(this.#lookTimer);
    this.#lookTimer = setTimeout(() => this.#guard(() => this.#look()), waitMs);
  }

  /** Looks at the interface, and hands on what is there. */
  #look(): void {
    this.#lookedAtMs = performance.now();
    this.#armLook(LOOK_MS);
    const before = this.#view;
    const { role } = this.#state;
    const view = this.#view = this.#viewNow();
    const { link, own, hasFloating } = view;
    if (link !== null && hasFloating) this.#heldAt ??= link.index;
    if ((link === null) !== (before.link === null) && before !== NO_VIEW) {
      if (link === null) this.#logMissing();
      else log.info("the interface is there", { interface: link.name });
    }
    const isOther = link?.index !== before.link?.index ||
      (own !== null && (before.own === null || !equalBytes(own, before.own)));
    if (link !== null && own !== null && isOther && !this.#config.unicast) {
      const isMember = joinGroup(this.#libc, this.#sockets.vrrp, own, link.index);
      if (!isMember) log.error("cannot join 224.0.0.18", { interface: link.name });
    }
    if (role === "holder" && link !== null && own !== null && !hasFloating) {
      log.warn("somebody has removed the address: adding it again", { interface: link.name });
    }
    if (role === "backup" && hasFloating) {
      log.warn("removing a copy of the address that this node does not hold", {
        interface: link?.name,
      });
    }
    this.#on({ type: "interface", own, hasFloating });
  }

  #viewNow(): View {
    const { interface: device, address, peer } = this.#config;
    const link = this.#tables.link(device);
    if (link === null) return { ...NO_VIEW };
    const addresses = this.#tables.addresses();
    const isFloating = (a: InterfaceAddress) =>
      a.index === link.index && equalBytes(a.address, address);
    return {
      link,
      own: link.isUp ? ownAddress(addresses, link.index, address, peer) : null,
      hasFloating: addresses.some(isFloating),
    };
  }

  #logMissing(): void {
    log.warn("vrrp.interface: there is no such interface: waiting for it", {
      interface: this.#config.interface,
      there: this.#tables.interfaces().map(({ name }) => name).join(", "),
    });
  }
}
