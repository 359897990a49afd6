import { parseIp } from "../addr/mod.ts";
import { equalNames, HashedName, parseName, Qtype } from "../dns/mod.ts";
import { invariant } from "../errors.ts";

/** A search engine: hosts that people search at, and what keeps explicit results out. */
export interface SearchEngine {
  readonly name: string;
  /** Whole names: what stands below them is left alone. */
  readonly hosts: readonly string[];
  /** The engine's safe host, or the IPv4 address of one that has no name. */
  readonly safe: string;
}

const GOOGLE_SUFFIXES = (
  "ad ae al am as at az ba be bf bg bi bj bs bt by ca cat cd cf cg ch ci cl cm cn co " +
  "co.ao co.bw co.ck co.cr co.id co.il co.in co.jp co.ke co.kr co.ls co.ma co.mz co.nz co.th " +
  "co.tz co.ug co.uk co.uz co.ve co.vi co.za co.zm co.zw com com.af com.ag com.ai com.ar com.au " +
  "com.bd com.bh com.bn com.bo com.br com.bz com.co com.cu com.cy com.do com.ec com.eg com.et " +
  "com.fj com.gh com.gi com.gt com.hk com.jm com.kh com.kw com.lb com.ly com.mm com.mt com.mx " +
  "com.my com.na com.nf com.ng com.ni com.np com.om com.pa com.pe com.pg com.ph com.pk com.pr " +
  "com.py com.qa com.sa com.sb com.sg com.sl com.sv com.tj com.tr com.tw com.ua com.uy com.vc " +
  "com.vn cv cz de dj dk dm dz ee es fi fm fr ga ge gg gl gm gp gr gy hn hr ht hu ie im iq is it " +
  "je jo kg ki kz la li lk lt lu lv md me mg mk ml mn ms mu mv mw ne nl no nr nu pl pn ps pt ro " +
  "rs ru rw sc se sh si sk sm sn so sr st td tg tk tl tm tn to tt vg vu ws"
).split(" ");

const YANDEX_SUFFIXES = (
  "az by co.il com com.am com.ge com.ru com.tr de ee eu fi fr kz lt lv md net org pl ru tj tm uz"
).split(" ");

/** The engines, as each tells network operators to lead their users. */
export const SEARCH_ENGINES: readonly SearchEngine[] = [
  {
    name: "Google",
    hosts: GOOGLE_SUFFIXES.map((suffix) => `www.google.${suffix}`),
    safe: "forcesafesearch.google.com",
  },
  {
    name: "YouTube",
    hosts: [
      "www.youtube.com",
      "m.youtube.com",
      "youtubei.googleapis.com",
      "youtube.googleapis.com",
      "www.youtube-nocookie.com",
    ],
    // The strict one of two.
    safe: "restrict.youtube.com",
  },
  {
    name: "Bing",
    hosts: ["www.bing.com", "edgeservices.bing.com"],
    safe: "strict.bing.com",
  },
  {
    name: "DuckDuckGo",
    hosts: ["duckduckgo.com", "www.duckduckgo.com", "start.duckduckgo.com"],
    safe: "safe.duckduckgo.com",
  },
  { name: "Ecosia", hosts: ["www.ecosia.org"], safe: "strict-safe-search.ecosia.org" },
  { name: "Pixabay", hosts: ["pixabay.com"], safe: "safesearch.pixabay.com" },
  {
    name: "Yandex",
    hosts: [
      ...YANDEX_SUFFIXES.map((suffix) => `yandex.${suffix}`),
      "ya.ru",
      "xn--d1acpjx3f.xn--p1ai",
    ].flatMap((host) => [host, `www.${host}`]),
    safe: "213.180.193.56",
  },
];

/** The name is no search engine's. */
export const NO_ENGINE = -1;

// A slot of the table: hash, where the name stands, engine + 1 (0: free).
const SLOT_WORDS = 3;
/** A power of two, four times the hosts or more: searches are short. */
const SLOTS = 1_024;

/** Which hosts are search engines', and where safe search leads. Looking up leaves no garbage. */
export class SafeSearch {
  readonly #slots = new Int32Array(SLOTS * SLOT_WORDS);
  readonly #names: Uint8Array;
  readonly #targets = SEARCH_ENGINES.map(({ safe }) => parseIp(safe) === null ? wire(safe) : null);
  readonly #addresses = SEARCH_ENGINES.map(({ safe }) => parseIp(safe));

  /** `seed` is that of every hash of a name in this process. */
  constructor(seed: number) {
    const hashed = new HashedName();
    const bytes: number[] = [];
    for (const [engine, { hosts }] of SEARCH_ENGINES.entries()) {
      for (const host of hosts) {
        const name = wire(host);
        hashed.read(name, 0, name.length, seed);
        let slot = (hashed.hashes[0] & (SLOTS - 1)) * SLOT_WORDS;
        while (this.#slots[slot + 2] !== 0) slot = (slot + SLOT_WORDS) % this.#slots.length;
        this.#slots.set([hashed.hashes[0], bytes.length, engine + 1], slot);
        bytes.push(...name);
      }
    }
    this.#names = Uint8Array.from(bytes);
  }

  /** The engine that a question for `qtype` about the name is to be led away from, or `NO_ENGINE`. */
  find(packet: Uint8Array, { hashes, offsets }: HashedName, qtype: number): number {
    // Other types hold no addresses: nobody searches by them.
    if (qtype !== Qtype.A && qtype !== Qtype.AAAA && qtype !== Qtype.HTTPS) return NO_ENGINE;
    const slots = this.#slots;
    let slot = (hashes[0] & (SLOTS - 1)) * SLOT_WORDS;
    while (slots[slot + 2] !== 0) {
      const isIt = slots[slot] === hashes[0] &&
        equalNames(this.#names, slots[slot + 1], packet, offsets[0]);
      if (isIt) return slots[slot + 2] - 1;
      slot += SLOT_WORDS;
      if (slot === slots.length) slot = 0;
    }
    return NO_ENGINE;
  }

  /** The engine's safe host in wire format; `null` where an address answers. */
  target(engine: number): Uint8Array | null {
    return this.#targets[engine];
  }

  /** The four bytes of the address that answers A for the engine; `null` where a host does. */
  address(engine: number): Uint8Array | null {
    return this.#addresses[engine];
  }
}

function wire(host: string): Uint8Array {
  const name = parseName(host);
  invariant(name !== null, `${host} is a name`);
  return name;
}
