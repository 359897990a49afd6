import { FOLD } from "../dns/mod.ts";

/** What a look-up came to. `Stale` is expired but may still be served (RFC 8767). */
export const CacheHit = { Miss: 0, Fresh: 1, Stale: 2 } as const;
export type CacheHit = typeof CacheHit[keyof typeof CacheHit];

export interface CacheLimits {
  /** Bytes of entries and index together. */
  readonly sizeBytes: number;
  /** Seconds past its expiry that an entry may still be served; 0 is never. */
  readonly serveStale: number;
}

/** What `store` keeps beside the message. */
export interface StoreOptions {
  /** Finished hash of the key: QNAME, type, DO and CD. */
  readonly hash: number;
  readonly qtype: number;
  /** DO and CD bits of the key. */
  readonly keyBits: number;
  /** Bytes of QNAME with its root. */
  readonly qnameLength: number;
  /** What the caller knows of the message, 0 to 3: see `state`. */
  readonly state?: number;
  /** Seconds until the entry expires; also the bound of every TTL it hands out. */
  readonly ttl: number;
  /** Extended errors to send with it, as options; none where left out. */
  readonly errors?: Uint8Array;
  readonly nowSeconds: number;
  /** Bytes about the message that are kept with it and no client is sent: see `copyAside`. */
  readonly aside?: Uint8Array;
}

// An entry is a run of 32-bit words: this head, TTL offsets (two a word), then the message, and
// where there is something aside or an extended error, a word with the number of bytes aside, these
// bytes, and the extended errors.
const E_HASH = 0;
const E_WORDS = 1;
const E_STORED = 2;
const E_EXPIRES = 3;
/** Type in the low half; DO and CD bits, then state bits, in the high half. */
const E_KEY = 4;
/** Message length in the low half, number of TTLs in the high half. */
const E_LENGTHS = 5;
/** QNAME length in the low half, bytes of extended errors in the high half. */
const E_QNAME = 6;
/** Generation of the rules under which the message is clean; see `isClean`. */
const E_CLEAN = 7;
const HEAD_WORDS = 8;

const VISITED_BIT = 1 << 28;
const REFRESHING_BIT = 1 << 29;
/** The message names nobody but whom it was asked about; see `hasNoAlias`. */
const NO_ALIAS_BIT = 1 << 30;
const STATE_SHIFT = 26;
const STATE_MASK = 3;
const KEY_MASK = (1 << STATE_SHIFT) - 1;

/** Of what `save` gives: another number with each change of what an entry is. */
const SAVED_FORMAT = 1;

const NOTHING: Uint8Array = new Uint8Array(0);

/** Slots of one bucket: what a look-up reads at most, one line of the processor's cache. */
const BUCKET_SLOTS = 8;
/** A slot's tag, then its place. */
const SLOT_WORDS = 2;
const BUCKET_WORDS = BUCKET_SLOTS * SLOT_WORDS;
/** Segments of the log; one in that many entries goes at a time. */
const SEGMENTS_MIN = 8;
const SEGMENT_BYTES_MAX = 256 * 1024;
/** Two thirds of a segment hold the largest message with its head and TTL offsets. */
const SEGMENT_BYTES_MIN = 128 * 1024;
/** A clock that is set back by more than this makes what was stored before worthless. */
const CLOCK_BACK_SECONDS = 60;
/** Most TTLs of one message that are aged: more RRs than this are not cached. */
export const TTLS_MAX = 4_000;
/** Header and question: where the first record can start at the earliest. */
const HEADER_BYTES = 12;

/**
 * One isolate's cache. Entries stand in a log of segments that is written round and round; the
 * segment ahead of the writer is cleared, and what was asked for since it was written is appended
 * again (FIFO with second chance: a scan of new names does not push out hot ones).
 */
export class Cache {
  readonly #words: Uint32Array<ArrayBuffer>;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  /** Buckets of slots, each a tag and the place of its entry in words plus one; 0 is empty. */
  readonly #slots: Int32Array<ArrayBuffer>;
  readonly #bucketMask: number;
  readonly #segmentWords: number;
  readonly #segmentCount: number;
  /** Words in use of each segment. */
  readonly #filled: Int32Array<ArrayBuffer>;
  readonly #staleSeconds: number;
  #segment = 0;
  #entries = 0;
  /** Entries pushed out before they expired. */
  evicted = 0;

  constructor({ sizeBytes, serveStale }: CacheLimits) {
    // An eighth for the index: 8 bytes a slot, so half full when entries average 128 bytes.
    const buckets = 2 ** Math.floor(Math.log2(sizeBytes / 8 / (BUCKET_WORDS * 4)));
    const logBytes = sizeBytes - buckets * BUCKET_WORDS * 4;
    const segmentBytes = Math.max(
      SEGMENT_BYTES_MIN,
      Math.min(SEGMENT_BYTES_MAX, Math.floor(logBytes / SEGMENTS_MIN)),
    );
    this.#segmentWords = segmentBytes >> 2;
    this.#segmentCount = Math.max(2, Math.floor(logBytes / segmentBytes));
    this.#bytes = new Uint8Array(this.#segmentCount * this.#segmentWords * 4);
    this.#words = new Uint32Array(this.#bytes.buffer);
    this.#slots = new Int32Array(buckets * BUCKET_WORDS);
    this.#bucketMask = buckets - 1;
    this.#filled = new Int32Array(this.#segmentCount);
    this.#staleSeconds = serveStale;
  }

  get entries(): number {
    return this.#entries;
  }

  /** Bytes of entries that stand in the log. */
  get usedBytes(): number {
    let words = 0;
    for (const filled of this.#filled) words += filled;
    return words * 4;
  }

  /**
   * Finds the entry for a question whose QNAME (uncompressed) stands at `qname` in `packet`.
   * Returns its handle, or -1. The handle is good until the next `store`.
   */
  find(
    hash: number,
    qtype: number,
    keyBits: number,
    packet: Uint8Array,
    qname: number,
    qnameLength: number,
  ): number {
    const first = (hash & this.#bucketMask) * BUCKET_WORDS;
    const words = this.#words;
    const key = qtype | (keyBits << 16);
    for (let slot = first; slot < first + BUCKET_WORDS; slot += SLOT_WORDS) {
      if (this.#slots[slot] !== hash || this.#slots[slot + 1] === 0) continue;
      const entry = this.#slots[slot + 1] - 1;
      if ((words[entry + E_KEY] & KEY_MASK) !== key) continue;
      if ((words[entry + E_QNAME] & 0xffff) !== qnameLength) continue;
      if (this.#sameName(this.#messageAt(entry) + HEADER_BYTES, packet, qname, qnameLength)) {
        return entry;
      }
    }
    return -1;
  }

  #sameName(stored: number, packet: Uint8Array, qname: number, length: number): boolean {
    const bytes = this.#bytes;
    // Length bytes are below 64 and so are left alone by the folding.
    for (let i = 0; i < length; i++) {
      if (FOLD[bytes[stored + i]] !== FOLD[packet[qname + i]]) return false;
    }
    return true;
  }

  /** Says whether an entry still holds, and marks it as asked for. */
  freshness(entry: number, nowSeconds: number): CacheHit {
    const words = this.#words;
    words[entry + E_KEY] |= VISITED_BIT;
    // Of a clock that was far ahead: its time says nothing, and may be years away.
    if (words[entry + E_STORED] > nowSeconds + CLOCK_BACK_SECONDS) return CacheHit.Miss;
    const expires = words[entry + E_EXPIRES];
    if (nowSeconds < expires) return CacheHit.Fresh;
    return nowSeconds < expires + this.#staleSeconds ? CacheHit.Stale : CacheHit.Miss;
  }

  /** Seconds that an entry still holds; negative when it has expired. */
  secondsLeft(entry: number, nowSeconds: number): number {
    return this.#words[entry + E_EXPIRES] - nowSeconds;
  }

  /** Seconds that an entry held when it was stored. */
  secondsWhole(entry: number): number {
    return this.#words[entry + E_EXPIRES] - this.#words[entry + E_STORED];
  }

  /** True once per entry: whoever asks first has it refreshed. */
  claimRefresh(entry: number): boolean {
    const words = this.#words;
    if ((words[entry + E_KEY] & REFRESHING_BIT) !== 0) return false;
    words[entry + E_KEY] |= REFRESHING_BIT;
    return true;
  }

  /** Bytes of the stored message. */
  messageLength(entry: number): number {
    return this.#words[entry + E_LENGTHS] & 0xffff;
  }

  /** Bytes of the extended errors that are kept with the message; usually 0. */
  errorsLength(entry: number): number {
    return this.#words[entry + E_QNAME] >>> 16;
  }

  /** Copies the extended errors to the start of a buffer that has room for them. */
  copyErrors(entry: number, target: Uint8Array): void {
    const words = this.#words;
    const length = words[entry + E_QNAME] >>> 16;
    const at = 4 * (entry + words[entry + E_WORDS] - ((length + 3) >> 2));
    for (let i = 0; i < length; i++) target[i] = this.#bytes[at + i];
  }

  /**
   * Copies what is kept aside of the message to the start of a buffer that has room for it; returns
   * its bytes, usually 0.
   */
  copyAside(entry: number, target: Uint8Array): number {
    const at = this.#messageAt(entry) + 4 * ((this.messageLength(entry) + 3) >> 2);
    const words = this.#words;
    if (at >> 2 === entry + words[entry + E_WORDS]) return 0;
    const length = words[at >> 2];
    target.set(this.#bytes.subarray(at + 4, at + 4 + length));
    return length;
  }

  /** Says whether `markClean` was called for the entry with this generation of the rules, not 0. */
  isClean(entry: number, generation: number): boolean {
    return this.#words[entry + E_CLEAN] === generation;
  }

  /** Notes that no rule of a generation is about what the message holds. */
  markClean(entry: number, generation: number): void {
    this.#words[entry + E_CLEAN] = generation;
  }

  /** Says whether `markNoAlias` was called for the entry. */
  hasNoAlias(entry: number): boolean {
    return (this.#words[entry + E_KEY] & NO_ALIAS_BIT) !== 0;
  }

  /** Notes that the message holds no CNAME, so that rules about names pass it, now and later. */
  markNoAlias(entry: number): void {
    this.#words[entry + E_KEY] |= NO_ALIAS_BIT;
  }

  /** What the entry was stored with as its `state`. */
  state(entry: number): number {
    return (this.#words[entry + E_KEY] >>> STATE_SHIFT) & STATE_MASK;
  }

  /** The two flag bytes of the stored message. */
  flags(entry: number): number {
    const at = this.#messageAt(entry);
    return (this.#bytes[at + 2] << 8) | this.#bytes[at + 3];
  }

  /**
   * Copies the message to the word-aligned `offset` of a buffer and ages its TTLs: each is what is
   * left of it, or `staleTtl` once the entry has expired (RFC 8767 §5). The caller has checked that
   * it fits. May write up to three bytes past its end.
   */
  copyTo(
    entry: number,
    bytes: Uint8Array,
    words: Uint32Array,
    offset: number,
    nowSeconds: number,
    staleTtl: number,
  ): void {
    const source = this.#words;
    const lengths = source[entry + E_LENGTHS];
    const ttlCount = lengths >>> 16;
    const ttlsAt = entry + HEAD_WORDS;
    const from = ttlsAt + ((ttlCount + 1) >> 1);
    const to = offset >> 2;
    const count = ((lengths & 0xffff) + 3) >> 2;
    for (let i = 0; i < count; i++) words[to + i] = source[from + i];
    const stored = source[entry + E_STORED];
    // An answer with a TTL of zero is handed out once, in the second it came, as it is.
    const expired = nowSeconds >= source[entry + E_EXPIRES] && nowSeconds > stored;
    // A clock that was set back makes no TTL grow.
    const age = nowSeconds > stored ? nowSeconds - stored : 0;
    for (let i = 0; i < ttlCount; i++) {
      const at = offset + ((source[ttlsAt + (i >> 1)] >>> ((i & 1) << 4)) & 0xffff);
      let ttl = staleTtl;
      if (!expired) {
        ttl = ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) -
          age;
        if (ttl < 0) ttl = 0;
      }
      bytes[at] = ttl >>> 24;
      bytes[at + 1] = ttl >>> 16;
      bytes[at + 2] = ttl >>> 8;
      bytes[at + 3] = ttl;
    }
  }

  /**
   * Keeps a message, in place of an entry for the same question. `ttlOffsets` are the offsets of
   * its TTL fields, already clamped. Returns the handle of the new entry, or -1 when the message is too large to keep.
   */
  store(
    options: StoreOptions,
    message: Uint8Array,
    start: number,
    length: number,
    ttlOffsets: Uint16Array,
    ttlCount: number,
  ): number {
    if (ttlCount > TTLS_MAX || length > 0xffff) return -1;
    const ttlWords = (ttlCount + 1) >> 1;
    const messageWords = (length + 3) >> 2;
    const aside = options.aside ?? NOTHING;
    const errors = options.errors ?? NOTHING;
    const hasMore = aside.length + errors.length > 0;
    const asideWords = hasMore ? 1 + ((aside.length + 3) >> 2) : 0;
    const errorsWords = (errors.length + 3) >> 2;
    const size = HEAD_WORDS + ttlWords + messageWords + asideWords + errorsWords;
    if (size > this.#segmentWords) return -1;
    const entry = this.#reserve(size);
    const words = this.#words;
    words[entry + E_HASH] = options.hash;
    words[entry + E_WORDS] = size;
    words[entry + E_STORED] = options.nowSeconds;
    words[entry + E_EXPIRES] = options.nowSeconds + options.ttl;
    words[entry + E_KEY] = options.qtype | (options.keyBits << 16) |
      ((options.state ?? 0) << STATE_SHIFT);
    words[entry + E_LENGTHS] = length | (ttlCount << 16);
    words[entry + E_CLEAN] = 0;
    words[entry + E_QNAME] = options.qnameLength | (errors.length << 16);
    for (let i = 0; i < ttlWords; i++) {
      const second = 2 * i + 1 < ttlCount ? ttlOffsets[2 * i + 1] : 0;
      words[entry + HEAD_WORDS + i] = ttlOffsets[2 * i] | (second << 16);
    }
    const at = (entry + HEAD_WORDS + ttlWords) << 2;
    for (let i = 0; i < length; i++) this.#bytes[at + i] = message[start + i];
    if (hasMore) {
      words[(at >> 2) + messageWords] = aside.length;
      this.#bytes.set(aside, at + 4 * messageWords + 4);
      this.#bytes.set(errors, at + 4 * (messageWords + asideWords));
    }
    this.#link(entry, options.nowSeconds);
    return entry;
  }

  /** Every entry that can be found, the oldest first, for the `load` of another cache. */
  save(): SharedArrayBuffer {
    const target = new Uint32Array(new SharedArrayBuffer(4 + this.usedBytes));
    target[0] = SAVED_FORMAT;
    let to = 1;
    for (let i = 1; i <= this.#segmentCount; i++) {
      const segment = (this.#segment + i) % this.#segmentCount;
      const end = segment * this.#segmentWords + this.#filled[segment];
      for (let entry = segment * this.#segmentWords; entry < end;) {
        const size = this.#words[entry + E_WORDS];
        if (this.#slotOf(entry) >= 0) {
          target.set(this.#words.subarray(entry, entry + size), to);
          to += size;
        }
        entry += size;
      }
    }
    return target.buffer as SharedArrayBuffer;
  }

  /**
   * Takes over entries of a `save` that still hold. `hashOf` gives the finished hash of a key whose
   * QNAME stands at an offset of `bytes`, or `null` for one whose entry is left out. What is of another format is left.
   */
  load(
    saved: SharedArrayBuffer,
    hashOf: (bytes: Uint8Array, qname: number, qtype: number, keyBits: number) => number | null,
    nowSeconds: number,
  ): void {
    const source = new Uint32Array(saved);
    if (source[0] !== SAVED_FORMAT) return;
    for (let at = 1; at + HEAD_WORDS <= source.length;) {
      const size = source[at + E_WORDS];
      const lengths = source[at + E_LENGTHS];
      const needed = HEAD_WORDS + (((lengths >>> 16) + 1) >> 1) + (((lengths & 0xffff) + 3) >> 2);
      const fits = size <= this.#segmentWords && at + size <= source.length;
      if (size === 0 || size < needed || !fits) return; // The end, or no entry.
      if (source[at + E_EXPIRES] + this.#staleSeconds > nowSeconds) {
        const entry = this.#reserve(size);
        this.#words.set(source.subarray(at, at + size), entry);
        const key = this.#words[entry + E_KEY] &= ~(VISITED_BIT | REFRESHING_BIT);
        const qname = this.#messageAt(entry) + HEADER_BYTES;
        const hash = hashOf(this.#bytes, qname, key & 0xffff, (key & KEY_MASK) >>> 16);
        this.#words[entry + E_HASH] = hash ?? 0;
        this.#words[entry + E_CLEAN] = 0; // Of other rules.
        if (hash !== null) this.#link(entry, nowSeconds); // Else its room is free by and by.
      }
      at += size;
    }
  }

  /** Forgets everything. */
  flush(): void {
    this.#slots.fill(0);
    this.#filled.fill(0);
    this.#segment = 0;
    this.#entries = 0;
  }

  #messageAt(entry: number): number {
    const ttlCount = this.#words[entry + E_LENGTHS] >>> 16;
    return (entry + HEAD_WORDS + ((ttlCount + 1) >> 1)) << 2;
  }

  /** Puts an entry into its bucket. */
  #link(entry: number, nowSeconds: number): void {
    const words = this.#words;
    const hash = words[entry + E_HASH] | 0;
    const key = words[entry + E_KEY] & KEY_MASK;
    const qname = this.#messageAt(entry) + HEADER_BYTES;
    const qnameLength = words[entry + E_QNAME] & 0xffff;
    const known = this.find(hash, key & 0xffff, key >>> 16, this.#bytes, qname, qnameLength);
    const slot = known >= 0 ? this.#slotOf(known) : this.#roomFor(hash, nowSeconds);
    const place = this.#slots[slot + 1];
    if (place === 0) this.#entries++;
    else if (known < 0 && words[place - 1 + E_EXPIRES] > nowSeconds) this.evicted++;
    this.#slots[slot] = hash;
    this.#slots[slot + 1] = entry + 1;
  }

  /**
   * A free slot of the bucket, or else one whose entry has expired, or else one that was not asked
   * for since it was written; the soonest to expire among equals.
   */
  #roomFor(hash: number, nowSeconds: number): number {
    const first = (hash & this.#bucketMask) * BUCKET_WORDS;
    const words = this.#words;
    let victim = first;
    let victimWanted = true;
    let victimExpires = Infinity;
    for (let slot = first; slot < first + BUCKET_WORDS; slot += SLOT_WORDS) {
      if (this.#slots[slot + 1] === 0) return slot;
      const entry = this.#slots[slot + 1] - 1;
      const expires = words[entry + E_EXPIRES];
      const wanted = expires > nowSeconds && (words[entry + E_KEY] & VISITED_BIT) !== 0;
      // A scan of new names is to push out its own names, and no hot one.
      if (wanted === victimWanted ? expires >= victimExpires : wanted) continue;
      victim = slot;
      victimWanted = wanted;
      victimExpires = expires;
    }
    return victim;
  }

  /** Room for `size` words at the end of the log; clears the segment ahead when one is full. */
  #reserve(size: number): number {
    if (this.#filled[this.#segment] + size > this.#segmentWords) this.#advance();
    const entry = this.#segment * this.#segmentWords + this.#filled[this.#segment];
    this.#filled[this.#segment] += size;
    return entry;
  }

  /**
   * Goes on to the next segment, the oldest: the entries there that were asked for since they were
   * written are moved to its own start, the others go.
   */
  #advance(): void {
    const segment = (this.#segment + 1) % this.#segmentCount;
    const base = segment * this.#segmentWords;
    const end = base + this.#filled[segment];
    const words = this.#words;
    // Second chances take a third of the segment at most, so that any message still fits.
    const keepEnd = base + Math.floor(this.#segmentWords / 3);
    let to = base;
    for (let entry = base; entry < end;) {
      const size = words[entry + E_WORDS];
      const slot = this.#slotOf(entry);
      if (slot >= 0) {
        if ((words[entry + E_KEY] & VISITED_BIT) !== 0 && to + size <= keepEnd) {
          words.copyWithin(to, entry, entry + size);
          words[to + E_KEY] &= ~VISITED_BIT;
          this.#slots[slot + 1] = to + 1;
          to += size;
        } else {
          this.#slots[slot + 1] = 0;
          this.#entries--;
          this.evicted++;
        }
      }
      entry += size;
    }
    this.#filled[segment] = to - base;
    this.#segment = segment;
  }

  /** The slot that holds this very entry, or -1 when a newer one took its place. */
  #slotOf(entry: number): number {
    const first = (this.#words[entry + E_HASH] & this.#bucketMask) * BUCKET_WORDS;
    for (let slot = first; slot < first + BUCKET_WORDS; slot += SLOT_WORDS) {
      if (this.#slots[slot + 1] === entry + 1) return slot;
    }
    return -1;
  }
}
