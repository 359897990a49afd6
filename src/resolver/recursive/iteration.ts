import { formatIp } from "../../addr/mod.ts";
import { getU16 } from "../../bytes/mod.ts";
import { CacheHit } from "../../cache/mod.ts";
import {
  formatName,
  HashedName,
  HEADER_BYTES,
  NAME_BYTES_MAX,
  Qtype,
  Rcode,
  RCODE_MASK,
  rcodeName,
  skipPlainName,
} from "../../dns/mod.ts";
import {
  type Ask,
  type AskOwner,
  DENIAL_TTL,
  Fit,
  NOT_SENT,
  type ResponseReader,
  Scrubbed,
  type Sending,
} from "../ask/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import type { Flight, Task, Waiter } from "../flights/mod.ts";
import { Outcome } from "../outcome.ts";
import { isServiceName } from "../own_names.ts";
import { keptQuery, KEY_DO, keyHashOf, type Query } from "../query.ts";
import { questionText } from "../trace.ts";
import { AddressLookups } from "./address_lookups.ts";
import { AliasTrail } from "./alias_trail.ts";
import { Budget } from "./budget.ts";
import { Cut } from "./cut.ts";
import type { Delegation } from "./delegations.ts";
import {
  ENDLESS,
  failedBefore,
  lame,
  malformed,
  NO_SOCKET,
  noAddress,
  nobodyAnswered,
  refused,
  TOO_MANY_QUERIES,
  TOO_MANY_REFERRALS,
  unreachable,
  zoneFull,
} from "./failures.ts";
import {
  LOOKUP_PATIENCE_MS,
  PATIENCE_MS_MAX,
  REFERRALS_MAX,
  SAME_SERVER_MAX,
  SERVER_OPEN_MAX,
  STEP_OPEN_MAX,
  STEP_QUERIES_MAX,
} from "./limits.ts";
import type { Means } from "./means.ts";
import { nextProbe } from "./minimise.ts";
import type { NameServer } from "./name_servers.ts";
import { NO_TTL, Says } from "./name_server_reader.ts";

/**
 * Finds the answer of one flight: from the closest zone that is known down to the one that has it,
 * and on to where its aliases lead. Used again with its flight.
 */
export class Iteration implements Task, AskOwner<NameServer> {
  readonly asks: Ask<NameServer>[] = [];
  /** Shared with the questions that this one has asked. */
  budget: Budget = new Budget();
  readonly #flight: Flight;
  readonly #means: Means;
  /** The name that is looked for: the question's, or what its aliases have led to. */
  readonly #name = new Uint8Array(NAME_BYTES_MAX);
  readonly #hashed = new HashedName();
  /** What is sent: that name or the end of it. */
  readonly #asking: Query = keptQuery();
  readonly #trail: AliasTrail = new AliasTrail();
  readonly #lookups: AddressLookups;
  /** `null` while another flight looks for the name. */
  #cut: Cut | null = null;
  /** The label at which the name that is sent begins, and what was sent short of the whole name. */
  #probe = 0;
  #probes = 0;
  #minimises = false;
  #referrals = 0;
  /** A delegation that was kept has led nowhere, and was looked up anew. */
  #isRenewed = false;
  /** Servers of this step: how often each was asked, and those that would say the same again. */
  readonly #asked = new Map<NameServer, number>();
  readonly #declined = new Set<NameServer>();
  #stepQueries = 0;
  /** Who has given the last answer, and whom to leave where that is not believed. */
  #believed: NameServer | null = null;
  #avoided: NameServer | null = null;
  #lastSentAtMs = 0;
  /** When there is something to be done if nothing is heard before. */
  #nextAtMs = 0;
  #failure: ResolveFailure | null = null;

  constructor(flight: Flight, means: Means) {
    this.#flight = flight;
    this.#means = means;
    this.#lookups = new AddressLookups(flight, means, this);
  }

  begin(): void {
    const flight = this.#flight;
    const parent = flight.waiters?.parent?.task;
    this.budget = parent instanceof Iteration ? parent.budget : new Budget();
    flight.source = Outcome.Recursed;
    this.#avoided = flight.attempt > 0 ? this.#believed : null;
    this.#believed = null;
    this.#trail.start(flight.query);
    this.#failure = null;
    this.#cut = null;
    this.#referrals = 0;
    this.#isRenewed = false;
    this.#seek(flight.query.packet.subarray(HEADER_BYTES));
  }

  get failure(): ResolveFailure {
    if (this.#failure !== null) return this.#failure;
    const zone = this.#cut === null ? "." : formatName(this.#cut.zone);
    return this.#stepQueries === 0 ? noAddress(zone) : nobodyAnswered(zone);
  }

  tick(nowMs: number): void {
    for (const ask of this.asks) {
      if (ask.failed || nowMs - ask.sentAtMs < ask.server.patienceMs) continue;
      ask.failed = true;
      ask.server.silent(nowMs);
    }
    if (nowMs >= this.#nextAtMs && this.#cut !== null && !this.#flight.isOver(nowMs)) {
      this.askNext();
    }
  }

  end(): void {
    this.#means.asker.releaseAll(this);
  }

  /** Name servers are not asked to recurse: a query of ours that comes back is refused. */
  echo(): null {
    return null;
  }

  onChild(child: Waiter, entry: number): void {
    if (this.#cut === null) this.#onForwarded(child, entry);
    else this.#lookups.onChild(this.#cut, child, entry);
  }

  onSending({ server, sentAtMs, overTcp }: Ask<NameServer>): void {
    this.budget.sent++;
    this.#stepQueries++;
    this.#lastSentAtMs = sentAtMs;
    if (!overTcp) this.#asked.set(server, (this.#asked.get(server) ?? 0) + 1);
    this.#nextAtMs = sentAtMs + (overTcp ? PATIENCE_MS_MAX : server.patienceMs);
    this.#flight.trace?.note(this.#flight.depth, {
      event: "asked",
      question: questionText(this.#asking),
      zone: this.#zoneText,
      server: this.#textOf(server),
      ...(overTcp && { detail: "over TCP" }),
    });
  }

  onHeard({ server, sentAtMs }: Ask<NameServer>): void {
    const nowMs = this.#means.nowMs();
    this.#means.servers.heard(server, nowMs - sentAtMs, nowMs);
  }

  onResponse(ask: Ask<NameServer>, fit: Fit): void {
    const { asker, reader } = this.#means;
    const { response } = asker;
    const { server } = ask;
    if (fit === Fit.Broken) {
      this.#decline(ask, malformed(this.#zoneText, this.#textOf(server)));
      return;
    }
    if (fit === Fit.Failure) {
      this.#onRefusal(ask, response.rcode);
      return;
    }
    const says = reader.read(response, this.#cut!.zone);
    switch (says) {
      case Says.Lame:
        this.#declineLame(ask);
        break;
      case Says.Referral:
        this.#refer(response, server);
        break;
      case Says.Denial:
        this.#deny(ask);
        break;
      case Says.Answer:
        if (this.#probe > 0) this.#passProbe(reader.byDname);
        else this.#conclude(ask);
    }
  }

  /** A true answer may still follow; others are asked beside it. */
  onDoubt({ server }: Ask<NameServer>): void {
    this.#failure = malformed(this.#zoneText, this.#textOf(server));
    this.askNext();
  }

  onClosed({ server, failed }: Ask<NameServer>, sending: Sending, reason: string): void {
    if (sending === "noSocket") this.#noSocket();
    else if (!failed) server.silent(this.#means.nowMs());
    this.#declined.add(server);
    this.#failure = unreachable(this.#zoneText, this.#textOf(server), reason);
    this.askNext();
  }

  /** Asks the next server of the zone, or does what is left to do. */
  askNext(): void {
    const { asker, servers, nowMs } = this.#means;
    const flight = this.#flight;
    while (!flight.done) {
      const now = nowMs();
      const server = this.#stepQueries < STEP_QUERIES_MAX ? this.#choose(now) : null;
      if (server === null) {
        this.#waitOrEnd(now);
        return;
      }
      if (!this.budget.hasQueries) {
        this.#failure = TOO_MANY_QUERIES;
        if (this.asks.length === 0) this.#fail(TOO_MANY_QUERIES);
        else this.#nextAtMs = Infinity;
        return;
      }
      if (this.asks.length >= STEP_OPEN_MAX) asker.release(this.asks[0]);
      const sending = asker.ask(this, server, this.#asking);
      if (sending === "sent") return;
      if (sending === "noSocket") {
        this.#noSocket();
        if (this.asks.length === 0) this.#fail(NO_SOCKET);
        return;
      }
      if (sending === "unreachable") servers.unreachable(server, now);
      this.#declined.add(server);
      this.#failure = unreachable(this.#zoneText, this.#textOf(server), NOT_SENT);
    }
  }

  /** The server to ask next; `null`: none is left that has room. */
  #choose(nowMs: number): NameServer | null {
    const { asker, servers } = this.#means;
    const cut = this.#cut!;
    let fewest = Infinity;
    let found: NameServer[] = [];
    let all = 0;
    for (const entry of cut.entries) {
      for (const server of entry.servers) {
        all++;
        if (this.#declined.has(server) || found.includes(server)) continue;
        if (server.open >= SERVER_OPEN_MAX || asker.isFull(server)) continue;
        // Whether it is back, another question finds out at this moment.
        if (server.isDown(nowMs) && server.open > 0) continue;
        if (this.asks.some((ask) => ask.isDoubted && ask.server === server)) continue;
        const count = (this.#asked.get(server) ?? 0) + (server === this.#avoided ? 1 : 0);
        if (count > fewest) continue;
        if (count < fewest) [fewest, found] = [count, []];
        found.push(server);
      }
    }
    if (fewest >= SAME_SERVER_MAX + (all === 1 ? 1 : 0)) return null;
    return servers.choose(found, cut.hash, nowMs);
  }

  /** No server is left to ask: waits, finds further addresses, or gives up. */
  #waitOrEnd(nowMs: number): void {
    const { asker } = this.#means;
    const cut = this.#cut!;
    const isSilent = this.asks.every(({ failed }) => failed) &&
      nowMs - this.#lastSentAtMs >= PATIENCE_MS_MAX;
    if (this.asks.length > 0 && !isSilent) {
      this.#askBeside();
      this.#nextAtMs = this.#lastSentAtMs + PATIENCE_MS_MAX;
      return;
    }
    if (this.#lookups.begin(cut)) {
      this.askNext();
      return;
    }
    if (cut.looking > 0) {
      this.#nextAtMs = nowMs + LOOKUP_PATIENCE_MS;
      return;
    }
    asker.releaseAll(this);
    if (cut.isStored && !cut.isRoot && !this.#isRenewed) {
      // The zone may have moved since: the zone above knows.
      this.#isRenewed = true;
      this.#means.delegations.forget(this.#hashed, this.#name, cut.label);
      this.#enterClosest(cut.label + 1);
      return;
    }
    this.#fail(this.failure);
  }

  /** What was said about addresses of the zone's servers has come. */
  onAddresses(): void {
    if (this.asks.length === 0 && !this.#flight.done) this.askNext();
    else this.#nextAtMs = Math.min(this.#nextAtMs, this.#means.nowMs());
  }

  /** Whoever has answered with a malformed message may do better over TCP. */
  #askBeside(): void {
    const doubted = this.asks.find((ask) => ask.isDoubted && !ask.hasBeside);
    if (doubted === undefined || this.#means.asker.isFull(doubted.server)) return;
    doubted.hasBeside = true;
    this.#means.asker.askOverTcp(this, doubted.server, this.#asking);
  }

  #decline(ask: Ask<NameServer>, failure: ResolveFailure): void {
    const { asker } = this.#means;
    const { server } = ask;
    this.#declined.add(server);
    this.#failure = failure;
    this.#note("failed", failure.text);
    asker.release(ask);
    // What is malformed over TCP as well is no forgery.
    for (const other of [...this.asks]) if (other.server === server) asker.release(other);
    this.askNext();
  }

  #declineLame(ask: Ask<NameServer>): void {
    const { server } = ask;
    server.noteLame(this.#cut!.hash, this.#means.nowMs());
    this.#decline(ask, lame(this.#zoneText, this.#textOf(server)));
  }

  /** The server answered with a failure: it may do so because a name is not whole. */
  #onRefusal(ask: Ask<NameServer>, rcode: number): void {
    const { server } = ask;
    const failure = refused(this.#zoneText, this.#textOf(server), rcode);
    if (this.#probe > 0) {
      this.#note("failed", `${failure.text}; it is asked for the whole name`);
      this.#askWhole();
      return;
    }
    if (rcode === Rcode.Refused || rcode === Rcode.NotAuth) {
      server.noteLame(this.#cut!.hash, this.#means.nowMs());
    }
    this.#decline(ask, failure);
  }

  /** Looks for a name, uncompressed, from the closest zone that is known. */
  #seek(name: Uint8Array): void {
    const { local, delegations, seed } = this.#means;
    const { qtype } = this.#flight.query;
    const end = skipPlainName(name, 0);
    for (let i = 0; i < end; i++) this.#name[i] = name[i];
    this.#hashed.read(this.#name, 0, end, seed);
    this.#minimises = this.#means.minimises;
    const special = local.find(this.#hashed, this.#name, qtype);
    if (special !== null) {
      if (!this.#trail.isAlias) this.#flight.source = Outcome.Local;
      this.#flight.isValidated = false; // Nobody has signed what is said here.
      this.#note("local", formatName(this.#name));
      this.#concludeKept(special);
      return;
    }
    if (this.#trail.isAlias && this.#seekElsewhere()) return;
    const denial = delegations.denial(this.#hashed, this.#name, 0);
    if (denial !== null && this.#concludeKept(denial)) return;
    // Of a zone's DS the zone above it speaks.
    const from = qtype === Qtype.DS && this.#hashed.count > 0 ? 1 : 0;
    const ds = from === 0 || this.#flight.attempt > 0
      ? null
      : delegations.ds(this.#hashed, this.#name, 0);
    if (ds !== null && this.#concludeKept(ds)) return;
    this.#enterClosest(from);
  }

  /** What an alias leads to may be known, or be for others to find. */
  #seekElsewhere(): boolean {
    const { cache, isForwarded, nowSeconds } = this.#means;
    const { query } = this.#flight;
    const length = this.#hashed.offsets[this.#hashed.count] + 1;
    if (isForwarded(this.#name, length)) {
      const asking = this.#asking;
      asking.keep(query);
      asking.rename(this.#name);
      asking.keyHash = keyHashOf(this.#hashed.hashes[0], asking.qtype, asking.keyBits);
      this.#cut = null;
      if (!this.#flight.ask(asking)) this.#fail(ENDLESS);
      return true;
    }
    const hash = keyHashOf(this.#hashed.hashes[0], query.qtype, query.keyBits);
    const entry = cache.find(hash, query.qtype, query.keyBits, this.#name, 0, length);
    if (entry < 0 || cache.freshness(entry, nowSeconds()) !== CacheHit.Fresh) return false;
    this.#note("cached", formatName(this.#name));
    return this.#concludeEntry(entry);
  }

  /** An upstream has answered about what an alias leads to. */
  #onForwarded({ failure }: Waiter, entry: number): void {
    if (entry >= 0 && this.#concludeEntry(entry)) return;
    this.#fail(failure ?? this.failure);
  }

  /** Goes on at the closest known zone that begins at label `from` or further right. */
  #enterClosest(from: number): void {
    const { delegations, hints, prime, nowSeconds } = this.#means;
    const label = delegations.closest(this.#hashed, this.#name, from);
    const kept = label < 0 ? null : delegations.delegation(this.#hashed, this.#name, label);
    if (kept !== null) {
      this.#enter(label, kept, true);
      return;
    }
    prime();
    const expiresAtS = nowSeconds();
    this.#enter(this.#hashed.count, { servers: hints, expiresAtS }, true);
  }

  /** Goes on at the zone that begins at a label. */
  #enter(label: number, delegation: Delegation, isStored: boolean): void {
    const { zones, servers, asker } = this.#means;
    const flight = this.#flight;
    const hashed = this.#hashed;
    const [from, end] = [hashed.offsets[label], hashed.offsets[hashed.count] + 1];
    const hash = hashed.hashes[label];
    asker.releaseAll(this);
    const share = zones.of(hash, this.#name, from, end);
    if (share !== flight.share) {
      if (share.isFull) {
        this.#fail(zoneFull(share.text));
        return;
      }
      flight.move(share);
    }
    const zone = this.#name.slice(from, end);
    this.#cut = new Cut(zone, label, hash, delegation, servers, isStored);
    this.#probes = 0;
    this.#failure = null;
    this.#setProbe(label);
    this.askNext();
  }

  /** Chooses what is sent next, where the name is known from a label on. */
  #setProbe(label: number): void {
    const { delegations, dnssecOk } = this.#means;
    const { query } = this.#flight;
    this.#probe = this.#minimises
      ? nextProbe(
        this.#hashed,
        this.#name,
        label,
        this.#probes,
        (inner) => delegations.isInner(this.#hashed, this.#name, inner),
      )
      : 0;
    if (this.#probe > 0) this.#probes++;
    const asking = this.#asking;
    asking.keep(query);
    asking.qtype = this.#probe > 0 ? Qtype.A : query.qtype;
    asking.keyBits = dnssecOk ? KEY_DO : this.#flight.askBits & KEY_DO;
    asking.rename(this.#name.subarray(this.#hashed.offsets[this.#probe]));
    this.#stepQueries = 0;
    this.#asked.clear();
    this.#declined.clear();
  }

  /** A name above the one that is looked for is there, and no zone of its own. */
  #passProbe(byDname: boolean): void {
    const { delegations, reader, asker } = this.#means;
    if (!byDname) delegations.keepInner(this.#hashed, this.#name, this.#probe, reader.ttl);
    this.#note("answered", "no zone begins here");
    asker.releaseAll(this);
    if (byDname) this.#minimises = false; // It stands for all below it.
    this.#setProbe(this.#probe);
    this.askNext();
  }

  /** Servers that deny or refuse a part of a name may well know the whole one (RFC 9156 §3). */
  #askWhole(): void {
    this.#means.asker.releaseAll(this);
    this.#minimises = false;
    this.#setProbe(0);
    this.askNext();
  }

  #deny(ask: Ask<NameServer>): void {
    const { asker: { response }, reader, delegations } = this.#means;
    const isNxdomain = response.rcode === Rcode.NXDomain;
    if (!isNxdomain && this.#probe > 0) {
      this.#passProbe(false);
      return;
    }
    // The root's servers are known to deny what is not there, and a proof is looked at by others.
    const isFinal = this.#cut!.isRoot || (this.#flight.isValidated && reader.hasProof);
    if (this.#probe > 0 && !isFinal) {
      this.#note("answered", `${rcodeName(response.rcode)}; it is asked for the whole name`);
      this.#askWhole();
      return;
    }
    if (isNxdomain && this.#cut!.isRoot && reader.ttl < NO_TTL) {
      const message = response.packet.subarray(0, response.length);
      delegations.keepDenial(this.#hashed, this.#probe, message, reader.ttl);
    }
    this.#conclude(ask);
  }

  /** Goes on at the zone that the response read last refers to. */
  #refer(response: ResponseReader, server: NameServer): void {
    const { reader, delegations, nowSeconds, dnssecOk } = this.#means;
    const cut = this.#cut!;
    const label = this.#hashed.count - reader.cutLabels;
    const { servers, ttl } = reader.nameServers(response);
    if (++this.#referrals > REFERRALS_MAX) {
      this.#fail(TOO_MANY_REFERRALS);
      return;
    }
    const nowS = nowSeconds();
    // What is taken from the zone above is gone with it; the root is never.
    const boundS = cut.isRoot ? Infinity : Math.max(cut.expiresAtS, nowS);
    const delegation = { servers, expiresAtS: Math.min(nowS + ttl, boundS) };
    delegations.keep(this.#hashed, this.#name, label, delegation);
    if (dnssecOk) {
      const ds = reader.ds(response);
      const holdsS = ds === null ? 0 : Math.min(ds.ttl, delegation.expiresAtS - nowS);
      if (ds !== null) delegations.keepDs(this.#hashed, label, ds.message, holdsS);
    }
    this.#flight.trace?.note(this.#flight.depth, {
      event: "referral",
      zone: formatName(reader.cut),
      server: this.#textOf(server),
      detail: servers.map(({ name }) => formatName(name)).join(", "),
    });
    this.#enter(label, delegation, false);
  }

  /** Takes what the server says of the whole name, or denies of a part of it. */
  #conclude(ask: Ask<NameServer>): void {
    const { asker, scrubber, reader, delegations, nowSeconds } = this.#means;
    const { response } = asker;
    const cut = this.#cut!;
    const { server } = ask;
    const scrubbed = scrubber.scrub(response, this.#wantsSignatures, this.#trail.lead, cut.zone);
    if (scrubbed === Scrubbed.Broken && !ask.overStream) {
      asker.doubt(ask);
      return;
    }
    if (scrubbed === Scrubbed.Broken || scrubbed === Scrubbed.Nothing) {
      this.#decline(ask, malformed(this.#zoneText, this.#textOf(server)));
      return;
    }
    const { query } = this.#flight;
    if (cut.isRoot && query.qtype === Qtype.NS && this.#hashed.count === 0) {
      const { servers, ttl } = reader.rootServers(response);
      const known = servers.map((found) =>
        found.addresses.length > 0 ? found : this.#hintOf(found.name)
      ).filter(({ addresses }) => addresses.length > 0);
      const expiresAtS = nowSeconds() + ttl;
      if (known.length > 0) {
        delegations.keep(this.#hashed, this.#name, 0, { servers: known, expiresAtS });
      }
    }
    this.#believed = server;
    this.#take(scrubbed, rcodeName(response.rcode), this.#textOf(server));
  }

  #hintOf(name: Uint8Array) {
    const isSame = (hint: { name: Uint8Array }) => hint.name.join() === name.join();
    return this.#means.hints.find(isSame) ?? { name, addresses: [] };
  }

  /** As `#conclude` for what is kept of an earlier answer. */
  #concludeEntry(entry: number): boolean {
    const { cache, messages, nowSeconds } = this.#means;
    if ((cache.flags(entry) & RCODE_MASK) === Rcode.ServFail) {
      this.#fail(failedBefore(formatName(this.#name)));
      return true;
    }
    return this.#concludeKept(messages.copy(entry), cache.secondsLeft(entry, nowSeconds()));
  }

  #concludeKept(message: Uint8Array, holdsS = Infinity): boolean {
    const { kept, scrubber, asker } = this.#means;
    if (!kept.readKept(message)) return false;
    asker.releaseAll(this);
    const scrubbed = scrubber.scrub(kept, this.#wantsSignatures, this.#trail.lead);
    scrubber.ttl = Math.min(scrubber.ttl, holdsS);
    this.#take(scrubbed, rcodeName(getU16(message, 2) & 15), "");
    return true;
  }

  /** Goes on with what the scrubber has made of a response. */
  #take(scrubbed: Scrubbed, rcode: string, server: string): void {
    const { scrubber, asker } = this.#means;
    asker.releaseAll(this);
    if (scrubbed === Scrubbed.Whole) {
      this.#note("answered", rcode, server);
      this.#answer(this.#trail.boundTtl(scrubber.ttl));
      return;
    }
    if (scrubbed !== Scrubbed.Open || !this.#trail.follow(scrubber)) {
      this.#fail(ENDLESS);
      return;
    }
    this.#note("alias", formatName(scrubber.target), server);
    // Names of the service itself are never asked of others: the chain is all there is to say.
    if (isServiceName(scrubber.target)) {
      this.#answer(Math.min(this.#trail.boundTtl(scrubber.ttl), DENIAL_TTL));
      return;
    }
    this.#referrals = 0;
    this.#isRenewed = false;
    this.#seek(scrubber.target.slice());
  }

  #answer(ttl: number): void {
    const { scrubber } = this.#means;
    scrubber.ttl = ttl;
    this.#flight.zone = this.#trail.isAlias || this.#cut === null ? null : this.#cut.zone;
    this.#flight.answer(scrubber, NO_ERRORS);
  }

  #fail(failure: ResolveFailure): void {
    this.#note("failed", failure.text);
    this.#flight.fail(failure);
  }

  #noSocket(): void {
    this.#failure = NO_SOCKET;
    this.#means.noteNoSocket();
  }

  get #wantsSignatures(): boolean {
    return (this.#flight.askBits & KEY_DO) !== 0;
  }

  get #zoneText(): string {
    return this.#cut === null ? "." : formatName(this.#cut.zone);
  }

  #textOf(server: NameServer): string {
    const address = formatIp(server.endpoint.ip);
    const name = this.#cut?.nameOf(server) ?? null;
    return name === null ? address : `${formatName(name)} (${address})`;
  }

  #note(
    event: "answered" | "alias" | "failed" | "cached" | "local",
    detail: string,
    server = "",
  ): void {
    const flight = this.#flight;
    if (flight.trace === null) return;
    const zone = this.#cut === null ? {} : { zone: this.#zoneText };
    flight.trace.note(flight.depth, { event, detail, ...zone, ...(server !== "" && { server }) });
  }
}

const NO_ERRORS = new Uint8Array(0);
