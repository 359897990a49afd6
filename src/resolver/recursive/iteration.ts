import { getU16 } from "../../bytes/mod.ts";
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
import { type Ask, DENIAL_TTL, Fit, type ResponseReader, Scrubbed } from "../ask/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import type { Flight, Task, Waiter } from "../flights/mod.ts";
import { Outcome } from "../outcome.ts";
import { isServiceName } from "../own_names.ts";
import { KEY_CD, KEY_DO, keyHashOf, setKeyHashes } from "../query.ts";
import { AliasTrail } from "./alias_trail.ts";
import { Budget } from "./budget.ts";
import { countEnd } from "./count_end.ts";
import { Cut } from "./cut.ts";
import { Delegation } from "./delegation.ts";
import {
  ENDLESS,
  failedBefore,
  isHopeless,
  lame,
  malformed,
  outOfTime,
  refused,
  TOO_MANY_REFERRALS,
  zoneFull,
} from "./failures.ts";
import type { Hint } from "./hints.ts";
import { knownTarget } from "./known_targets.ts";
import { REFERRALS_MAX } from "./limits.ts";
import type { Means } from "./means.ts";
import { nextProbe } from "./minimise.ts";
import type { NameServer } from "./name_servers.ts";
import { NO_TTL, Says } from "./name_server_reader.ts";
import { noteOwnServers } from "./own_servers.ts";
import { Step, type StepOwner } from "./step.ts";

const NO_ERRORS: Uint8Array = new Uint8Array(0);
const ROOT: Uint8Array = new Uint8Array(1);

/**
 * Finds the answer of one flight: from the closest zone that is known down to the one that has it,
 * and on to where its aliases lead. Used again with its flight.
 */
export class Iteration implements Task, StepOwner {
  readonly #flight: Flight;
  readonly #means: Means;
  readonly #step: Step;
  /** The name that is looked for: the question's, or what its aliases have led to. */
  readonly #name = new Uint8Array(NAME_BYTES_MAX);
  readonly #hashed = new HashedName();
  readonly #trail: AliasTrail = new AliasTrail();
  /** The label at which the name that is sent begins, and how often it was sent short of the whole. */
  #probe = 0;
  #probes = 0;
  #minimises = false;
  #referrals = 0;
  /** A delegation that was kept has led nowhere, and was looked up anew. */
  #isRenewed = false;
  readonly #isInner = (label: number): boolean =>
    this.#means.delegations.isInner(this.#hashed, this.#name, label);
  /** Who has given the last answer. */
  #answeredBy: NameServer | null = null;
  /** How it ended, if it did. */
  #isAnswered = false;
  #failure: ResolveFailure | null = null;

  constructor(flight: Flight, means: Means) {
    this.#flight = flight;
    this.#means = means;
    this.#step = new Step(flight, means, this);
  }

  begin(): void {
    const flight = this.#flight;
    const step = this.#step;
    const parent = flight.waiters?.parent?.task;
    if (parent instanceof Iteration) step.budget = parent.#step.budget;
    // What is not believed the first time is asked for once more by what is left.
    else if (flight.doubt === null) step.budget = new Budget();
    step.enter(null);
    flight.source = Outcome.Recursed;
    // What is not believed is asked for elsewhere.
    step.avoided = flight.attempt === 0
      ? null
      : this.#means.believed.get(flight.query) ?? this.#answeredBy;
    step.avoided?.takesEdns(); // Without EDNS nothing is signed.
    this.#answeredBy = this.#failure = flight.madeHere = null;
    this.#isAnswered = false;
    const { packet, questionEnd } = flight.query;
    this.#trail.start(packet.subarray(0, questionEnd));
    this.#referrals = 0;
    this.#isRenewed = false;
    this.#seek(packet, HEADER_BYTES);
  }

  get failure(): ResolveFailure {
    return outOfTime(this.#step.failure);
  }

  tick(nowMs: number): void {
    this.#step.tick(nowMs);
  }

  end(): void {
    this.#step.stop();
  }

  closed(): void {
    this.#count();
  }

  /** Counts a question of nobody's but a client's, or of one whose answer is renewed. */
  #count(): void {
    const { counts, nowMs } = this.#means;
    const { depth, source, startedAtMs } = this.#flight;
    if (depth > 0 || source === Outcome.Local) return;
    const failure = this.#isAnswered ? null : this.#failure ?? this.failure;
    countEnd(counts, this.#step.budget.sent, nowMs() - startedAtMs, failure);
  }

  /** Name servers are not asked to recurse: a query of ours that comes back is refused. */
  echo(): null {
    return null;
  }

  onChild(child: Waiter, entry: number): void {
    const { cut } = this.#step;
    if (cut === null) this.#onForwarded(child, entry);
    else this.#step.onChild(cut, child, entry);
  }

  onAnswer(ask: Ask<NameServer>, fit: Fit): void {
    const step = this.#step;
    const { asker: { response }, reader } = this.#means;
    const { server } = ask;
    if (fit === Fit.Broken) {
      step.decline(ask, malformed(step.zoneText, step.textOf(server)));
      return;
    }
    if (fit === Fit.Failure) {
      this.#onRefusal(ask, response.rcode);
      return;
    }
    switch (reader.read(response, step.cut!.zone)) {
      case Says.Lame:
        server.noteLame(step.cut!.hash, this.#means.nowMs());
        step.decline(ask, lame(step.zoneText, step.textOf(server)));
        return;
      case Says.Referral:
        this.#refer(response, server);
        return;
      case Says.Nothing:
        if (step.declineSilent(ask, lame(step.zoneText, step.textOf(server)))) return;
        this.#deny(ask);
        return;
      case Says.Denial:
        this.#deny(ask);
        return;
      case Says.Answer:
        if (this.#probe > 0) this.#passProbe(reader.byDname);
        else this.#conclude(ask);
    }
  }

  onExhausted(failure: ResolveFailure): void {
    const cut = this.#step.cut!;
    if (this.#probe > 0 && !isHopeless(failure)) {
      this.#step.note("failed", `${failure.text}; the whole name is asked for`);
      this.#askWhole();
      return;
    }
    if (cut.isStored && !cut.isRoot && !this.#isRenewed && failure.code !== "overWork") {
      // The zone may have moved since: the zone above knows.
      this.#isRenewed = true;
      this.#means.delegations.forget(this.#hashed, this.#name, cut.label);
      this.#enterClosest(cut.label + 1);
      return;
    }
    this.#fail(failure);
  }

  /** The server answered with a failure: it may do so because a name is not whole. */
  #onRefusal(ask: Ask<NameServer>, rcode: number): void {
    const step = this.#step;
    const { server } = ask;
    const failure = refused(step.zoneText, step.textOf(server), rcode);
    if (this.#probe > 0) {
      step.note("failed", `${failure.text}; it is asked for the whole name`);
      this.#askWhole();
      return;
    }
    if (rcode === Rcode.Refused || rcode === Rcode.NotAuth) {
      server.noteLame(step.cut!.hash, this.#means.nowMs());
    }
    step.decline(ask, failure);
  }

  /** Looks for a name, uncompressed, from the closest zone that is known. */
  #seek(name: Uint8Array, offset = 0): void {
    const { local, delegations, seed, minimises } = this.#means;
    const flight = this.#flight;
    const { qtype } = flight.query;
    const hashed = this.#hashed;
    const end = skipPlainName(name, offset) - offset;
    for (let i = 0; i < end; i++) this.#name[i] = name[offset + i];
    hashed.read(this.#name, 0, end, seed);
    this.#minimises = minimises;
    this.#probes = 0;
    const special = local.find(hashed, this.#name, qtype);
    if (special !== null) {
      // Nobody has signed what is said here.
      if (this.#trail.isAlias) flight.madeHere = this.#name.slice(0, end);
      else [flight.source, flight.isValidated] = [Outcome.Local, false];
      this.#step.note("local", formatName(this.#name));
      this.#concludeKept(special);
      return;
    }
    if (this.#trail.isAlias && this.#seekElsewhere()) return;
    // What is not believed is asked for anew.
    if (flight.attempt > 0) delegations.forgetDenials(hashed, this.#name);
    const denial = delegations.denial(hashed, this.#name, 0);
    if (denial !== null && this.#concludeKept(denial)) return;
    // Of a zone's DS the zone above it speaks, and may have done so with its referral.
    const from = qtype === Qtype.DS && hashed.count > 0 ? 1 : 0;
    const ds = from === 0 || flight.attempt > 0 ? null : delegations.ds(hashed, this.#name, 0);
    if (ds !== null && this.#concludeKept(ds)) return;
    this.#enterClosest(from);
  }

  /** What an alias leads to may be known, or be for others to find. */
  #seekElsewhere(): boolean {
    const flight = this.#flight;
    const hashed = this.#hashed;
    if (this.#means.isForwarded(this.#name, hashed.offsets[hashed.count] + 1)) {
      const { asking } = this.#step;
      asking.keep(flight.query);
      asking.keyBits |= flight.askBits & KEY_DO;
      asking.rename(this.#name);
      setKeyHashes(asking, hashed.hashes[0]);
      this.#step.enter(null);
      if (!flight.ask(asking)) this.#fail(ENDLESS);
      return true;
    }
    const entry = knownTarget(this.#means, flight, hashed, this.#name);
    if (entry < 0) return false;
    this.#step.note("cached", formatName(this.#name));
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
    this.#enter(this.#hashed.count, new Delegation(ROOT, hints, nowSeconds()), true);
  }

  /** Goes on at the zone that begins at a label. */
  #enter(label: number, delegation: Delegation, isStored: boolean): void {
    const { zones, servers } = this.#means;
    const flight = this.#flight;
    const { offsets, hashes, count } = this.#hashed;
    const [from, end] = [offsets[label], offsets[count] + 1];
    const hash = hashes[label];
    const share = zones.of(hash, this.#name, from, end);
    if (share !== flight.share) {
      if (share.isFull) {
        this.#fail(zoneFull(share.text));
        return;
      }
      flight.move(share);
    }
    this.#step.enter(new Cut(delegation, label, hash, servers, isStored));
    this.#ask(label);
  }

  /** Sends the name, or as much of it as is to be told, where it is known from a label on. */
  #ask(label: number): void {
    const { dnssecOk } = this.#means;
    const { query, askBits } = this.#flight;
    const hashed = this.#hashed;
    this.#probe = this.#minimises
      ? nextProbe(hashed, this.#name, label, this.#probes, this.#isInner)
      : 0;
    if (this.#probe > 0) this.#probes++;
    const { asking } = this.#step;
    asking.keep(query);
    asking.qtype = this.#probe > 0 ? Qtype.A : query.qtype;
    asking.keyBits = dnssecOk ? KEY_DO : askBits & KEY_DO;
    asking.rename(this.#name, hashed.offsets[this.#probe]);
    this.#step.start();
  }

  /** A name above the one that is looked for is there, and no zone of its own. */
  #passProbe(byDname: boolean): void {
    const { delegations, reader } = this.#means;
    this.#step.note("answered", "no zone begins here");
    if (byDname) this.#minimises = false; // It stands for all below it.
    else delegations.keepInner(this.#hashed, this.#name, this.#probe, reader.ttl);
    this.#ask(this.#probe);
  }

  /** Servers that deny or refuse a part of a name may well know the whole one (RFC 9156 §3). */
  #askWhole(): void {
    this.#minimises = false;
    this.#ask(0);
  }

  #deny(ask: Ask<NameServer>): void {
    const { asker: { response }, reader, delegations } = this.#means;
    const step = this.#step;
    const isNxdomain = response.rcode === Rcode.NXDomain;
    if (!isNxdomain && this.#probe > 0) {
      this.#passProbe(false);
      return;
    }
    // The root's servers are known to deny what is not there.
    const { isRoot } = step.cut!;
    if (this.#probe > 0 && !isRoot && !this.#isProven(response)) {
      step.note("answered", `${rcodeName(response.rcode)}; it is asked for the whole name`);
      this.#askWhole();
      return;
    }
    if (isNxdomain && isRoot && reader.ttl < NO_TTL) {
      const message = response.packet.subarray(0, response.length);
      delegations.keepDenial(this.#hashed, this.#probe, message, reader.ttl);
    }
    this.#conclude(ask);
  }

  /** Says whether what denies a part of the name proves that the whole is not there. */
  #isProven({ packet, length }: ResponseReader): boolean {
    const { reader, deniesName } = this.#means;
    if (!this.#flight.isValidated || !reader.hasProof) return false;
    const { offsets, count } = this.#hashed;
    const name = this.#name.subarray(0, offsets[count] + 1);
    return deniesName(packet, length, this.#step.cut!.zone, name);
  }

  /** Goes on at the zone that the response read last refers to. */
  #refer(response: ResponseReader, server: NameServer): void {
    const { reader, delegations, nowSeconds, dnssecOk } = this.#means;
    const cut = this.#step.cut!;
    const label = this.#hashed.count - reader.cutLabels;
    const { servers, ttl } = reader.nameServers(response);
    if (++this.#referrals > REFERRALS_MAX) {
      this.#fail(TOO_MANY_REFERRALS);
      return;
    }
    const nowS = nowSeconds();
    // What is taken from the zone above is gone with it; the root is never.
    const boundS = cut.isRoot ? Infinity : Math.max(cut.expiresAtS, nowS);
    const zone = reader.cutName();
    const delegation = new Delegation(zone, servers, Math.min(nowS + ttl, boundS));
    delegations.keep(this.#hashed, this.#name, label, delegation);
    const ds = dnssecOk ? reader.ds(response) : null;
    if (ds !== null) {
      const holdsS = Math.min(ds.ttl, delegation.expiresAtS - nowS);
      delegations.keepDs(this.#hashed, label, ds.message, holdsS);
      const keyHash = keyHashOf(this.#hashed.hashes[label], Qtype.DS, KEY_DO | KEY_CD);
      this.#means.believed.set({ keyHash }, server);
    }
    this.#flight.trace?.note(this.#flight.depth, {
      event: "referral",
      zone: formatName(reader.cut),
      server: this.#step.textOf(server),
      detail: servers.map(({ name }) => formatName(name)).join(", "),
    });
    this.#enter(label, delegation, false);
  }

  /** Takes what the server says of the whole name, or denies of a part of it. */
  #conclude(ask: Ask<NameServer>): void {
    const { asker, scrubber } = this.#means;
    const { response } = asker;
    const step = this.#step;
    const cut = step.cut!;
    const { server } = ask;
    const scrubbed = scrubber.scrub(response, this.#wantsSignatures, this.#trail.lead, cut.zone);
    if (scrubbed === Scrubbed.Broken && !ask.overStream) {
      asker.doubt(ask);
      return;
    }
    if (scrubbed === Scrubbed.Broken || scrubbed === Scrubbed.Nothing) {
      step.decline(ask, malformed(step.zoneText, step.textOf(server)));
      return;
    }
    noteOwnServers(this.#means, response, cut, this.#hashed, this.#name);
    const isPriming = cut.isRoot && this.#hashed.count === 0;
    if (isPriming && this.#flight.query.qtype === Qtype.NS) this.#keepRoot(response);
    this.#answeredBy = server;
    const { query } = this.#flight;
    const isOfChain = query.qtype === Qtype.DS || query.qtype === Qtype.DNSKEY;
    if (this.#wantsSignatures && isOfChain) this.#means.believed.set(query, server);
    this.#take(scrubbed, rcodeName(response.rcode), server);
  }

  /** Name servers that the zone at hand has by its own word alone. */
  ownServers(cut: Cut): readonly Hint[] {
    return this.#means.delegations.own(this.#hashed, this.#name, cut.label);
  }

  /** Keeps the root's own word for its name servers, with hints for what has no room in it. */
  #keepRoot(response: ResponseReader): void {
    const { reader, delegations, hints, nowSeconds } = this.#means;
    const { servers, ttl } = reader.rootServers(response);
    const hinted = (name: Uint8Array) =>
      hints.find((hint) => hint.name.join() === name.join())?.addresses ?? [];
    const known: Hint[] = servers.map(({ name, addresses }) => ({
      name,
      addresses: addresses.length > 0 ? addresses : hinted(name),
    })).filter(({ addresses }) => addresses.length > 0);
    if (known.length === 0) return;
    const delegation = new Delegation(ROOT, known, nowSeconds() + ttl);
    delegations.keep(this.#hashed, this.#name, 0, delegation);
  }

  /** As `#conclude` for what is kept of an earlier answer; false: it is of no use. */
  #concludeEntry(entry: number): boolean {
    const { cache, messages, nowSeconds } = this.#means;
    if ((cache.flags(entry) & RCODE_MASK) === Rcode.ServFail) {
      this.#fail(failedBefore(formatName(this.#name)));
      return true;
    }
    return this.#concludeKept(messages.copy(entry), cache.secondsLeft(entry, nowSeconds()));
  }

  #concludeKept(message: Uint8Array, holdsS = Infinity): boolean {
    const { kept, scrubber } = this.#means;
    if (!kept.readKept(message)) return false;
    const scrubbed = scrubber.scrub(kept, this.#wantsSignatures, this.#trail.lead);
    scrubber.ttl = Math.min(scrubber.ttl, holdsS);
    this.#take(scrubbed, rcodeName(getU16(message, 2) & RCODE_MASK), null);
    return true;
  }

  /** Goes on with what the scrubber has made of a response. */
  #take(scrubbed: Scrubbed, rcode: string, server: NameServer | null): void {
    const { scrubber } = this.#means;
    const step = this.#step;
    step.stop();
    if (!this.#trail.isAlias) this.#flight.home = step.cut?.zone ?? null;
    if (scrubbed === Scrubbed.Whole) {
      step.note("answered", rcode, server);
      this.#answer(this.#trail.boundTtl(scrubber.ttl));
      return;
    }
    if (scrubbed !== Scrubbed.Open || !this.#trail.follow(scrubber)) {
      this.#fail(ENDLESS);
      return;
    }
    step.note("alias", formatName(scrubber.target), server);
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
    this.#isAnswered = true;
    const { scrubber } = this.#means;
    const { cut } = this.#step;
    scrubber.ttl = ttl;
    this.#flight.zone = this.#trail.isAlias || cut === null ? null : cut.zone;
    this.#flight.answer(scrubber, NO_ERRORS);
  }

  #fail(failure: ResolveFailure): void {
    this.#step.note("failed", failure.text);
    this.#failure = failure;
    this.#flight.fail(failure);
  }

  get #wantsSignatures(): boolean {
    return (this.#flight.askBits & KEY_DO) !== 0;
  }
}
