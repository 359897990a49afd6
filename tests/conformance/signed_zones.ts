/**
 * Zones signed by BIND's tools and served by NSD on a loopback port: an anchored one, and in it one
 * signed with NSEC3, one with opt-out, one that is not signed. What is in them is drawn by chance.
 */
import assert from "node:assert/strict";
import {
  decodeMessage,
  encodeQuery,
  formatName,
  type Message,
  nameKey,
  parseName,
  parseQtype,
  Qtype,
} from "../../src/dns/mod.ts";
import {
  type Question,
  readSections,
  type RrSet,
  type RrSetResponse,
} from "../../src/dnssec/mod.ts";
import { freePort, until } from "../e2e/harness.ts";
import type { Prng } from "../prng.ts";

/** Every algorithm there is, by the names of BIND's tools. */
export const ALGORITHMS = [
  ...["RSASHA1", "NSEC3RSASHA1", "RSASHA256", "RSASHA512"],
  ...["ECDSAP256SHA256", "ECDSAP384SHA384", "ED25519", "ED448"],
] as const;
const TYPES = ["A", "AAAA", "MX", "TXT", "CNAME", "DNAME", "NS", "SOA", "DS", "DNSKEY", "NSEC"];

/** Tries to find a free port. */
const PORT_TRIES_MAX = 8;
const KEY_BITS: Readonly<Record<string, readonly string[]>> = {
  RSASHA1: ["-b", "1024"],
  NSEC3RSASHA1: ["-b", "1024"],
  RSASHA256: ["-b", "1024"],
  RSASHA512: ["-b", "1024"],
};

/** A zone to be signed, or not: the one with the longest name is the first. */
export interface ZoneSpec {
  readonly name: string;
  /** How absence is proven; `null`: it is not signed. */
  readonly denial: "nsec" | "nsec3" | "optout" | null;
  /** Records without SOA and NS, of owner names as they stand before the zone's. */
  readonly records: readonly string[];
  /** Zones below it, which are delegated without glue outside of them. */
  readonly children: readonly string[];
}

/** Names, wildcards, names between others and aliases, drawn by chance, of a zone below `top`. */
export function drawRecords(prng: Prng, top = "test."): string[] {
  const records = ["www A 192.0.2.1", "www AAAA 2001:db8::1", "*.wild TXT wildcard"];
  const label = () =>
    String.fromCharCode(...Array.from({ length: 1 + prng.int(3) }, () => 97 + prng.int(26)));
  for (let i = 0; i < 12; i++) {
    const owner = Array.from({ length: 1 + prng.int(3) }, label).join(".");
    const type = prng.pick([
      "A 192.0.2.7",
      "MX 10 MAIL",
      `TXT "${"x".repeat(prng.int(200))}"`,
      "AAAA ::7",
    ]);
    if (!/^www$|^ns$|wild$/.test(owner)) records.push(`${owner} ${type}`);
  }
  records.push(
    "alias CNAME www",
    `out CNAME www.plain.${top}`,
    "*.star CNAME www",
    "moved DNAME under",
    "x.under TXT there",
  );
  return records;
}

/** Zones of an algorithm below `top`: signed in every way, and not at all; the deepest first. */
export function zonesOf(prng: Prng, algorithm: string, top = "test."): ZoneSpec[] {
  // The older algorithm has no NSEC3 (RFC 5155 §2).
  const nsec3 = algorithm === "RSASHA1" ? "nsec" : "nsec3";
  const optout = algorithm === "RSASHA1" ? "nsec" : "optout";
  const zone = (
    name: string,
    denial: ZoneSpec["denial"],
    children: readonly string[] = [],
  ): ZoneSpec => ({
    name: `${name}${top}`,
    denial,
    records: drawRecords(prng, top),
    children: children.map((child) => `${child}${top}`),
  });
  return [
    zone("deep.hash.", "nsec"),
    zone("hash.", nsec3, ["deep.hash."]),
    zone("open.optout.", null),
    zone("optout.", optout, ["open.optout."]),
    zone("plain.", null),
    zone("", "nsec", ["hash.", "optout.", "plain."]),
  ];
}

/** A name and a type: one that is there, or close to it. */
export function drawQuestion(prng: Prng, zones: readonly ZoneSpec[]): Question {
  const zone = prng.pick(zones);
  const owner = prng.pick(zone.records).split(" ")[0].replace("*", prng.pick(["*", "a", "b.c"]));
  const name = prng.pick([
    ...[`${owner}.${zone.name}`, `${owner}.${zone.name}`, `x.${owner}.${zone.name}`],
    ...[
      zone.name,
      `q${prng.int(99)}.${zone.name}`,
      `${owner.replace(/^[^.]+\./, "")}.${zone.name}`,
    ],
  ]);
  const wire = parseName(prng.chance(0.2) ? name.toUpperCase() : name);
  assert(wire !== null, name);
  return { name: wire, type: parseQtype(prng.pick(TYPES))! };
}

/** An RRset with one bit changed, or `null` where that changes nothing or leaves no name. */
export function mutateRrSet(prng: Prng, rrset: RrSet): RrSet | null {
  const flip = (bytes: Uint8Array) => {
    const at = prng.int(bytes.length);
    return bytes.with(at, bytes[at] ^ (1 << prng.int(8)));
  };
  const what = prng.int(3);
  if (what === 0) {
    const owner = flip(rrset.owner);
    // A name in the other case is the same name, and a broken one never gets here.
    if (nameKey(owner) === nameKey(rrset.owner)) return null;
    return parseName(formatName(owner))?.length === owner.length ? { ...rrset, owner } : null;
  }
  if (what === 1) {
    const i = prng.int(rrset.rdatas.length);
    const rdata = flip(rrset.rdatas[i]);
    // Names in RDATA are covered in lower case.
    if (nameKey(rdata) === nameKey(rrset.rdatas[i])) return null;
    return { ...rrset, rdatas: rrset.rdatas.with(i, rdata) };
  }
  // Of two signatures, the other one is still good.
  if (rrset.signatures.length !== 1) return null;
  const signature = flip(rrset.signatures[0]);
  if (nameKey(signature) === nameKey(rrset.signatures[0])) return null;
  return { ...rrset, signatures: [signature] };
}

async function run(directory: string, program: string, ...args: string[]): Promise<string> {
  const command = new Deno.Command(program, {
    args,
    cwd: directory,
    stdout: "piped",
    stderr: "piped",
  });
  const { success, stdout, stderr } = await command.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  if (!success) throw new Error(`${program} ${args.join(" ")}: ${text(stderr)}`);
  return text(stdout);
}

/**
 * Writes and signs zones, children before their parents; returns where they are, which is beside
 * others where that is given.
 */
export async function signZones(
  zones: readonly ZoneSpec[],
  algorithm: string,
  beside?: string,
): Promise<string> {
  const directory = beside ?? await Deno.makeTempDir({ prefix: "svc-zones-" });
  for (const { name, denial, records, children } of zones) {
    const lines = [
      `$ORIGIN ${name}`,
      "$TTL 600",
      "@ SOA ns postmaster 1 3600 600 86400 300",
      "@ NS ns",
      "ns A 127.0.0.1",
      ...children.flatMap((
        child,
      ) => [`${child} NS ns.${child}`, `ns.${child} A 127.0.0.1`]),
      ...records,
    ];
    await Deno.writeTextFile(`${directory}/${name}zone`, `${lines.join("\n")}\n`);
    if (denial === null) {
      await Deno.copyFile(`${directory}/${name}zone`, `${directory}/${name}signed`);
      continue;
    }
    const keygen = ["-q", "-a", algorithm, ...KEY_BITS[algorithm] ?? [], "-K", directory];
    if (algorithm === "NSEC3RSASHA1") keygen.push("-3");
    await run(directory, "dnssec-keygen", ...keygen, "-f", "KSK", name);
    await run(directory, "dnssec-keygen", ...keygen, name);
    const nsec3 = {
      nsec: [],
      nsec3: ["-3", "ABCD", "-H", "3"],
      optout: ["-3", "-", "-H", "0", "-A"],
    };
    await run(
      directory,
      "dnssec-signzone",
      ...["-S", "-g", "-Q", "-K", directory, "-d", directory, "-o", name],
      ...["-s", "now-3600", "-e", "+864000", "-f", `${name}signed`],
      ...nsec3[denial],
      `${name}zone`,
    );
  }
  return directory;
}

export class SignedZones {
  #child: Deno.ChildProcess | null = null;
  /** Responses by question: the zones do not change. */
  readonly #responses = new Map<string, Promise<RrSetResponse>>();

  private constructor(readonly directory: string, readonly port: number) {}

  /** Serves what `signZones` has written. */
  static async serve(directory: string, names: readonly string[]): Promise<SignedZones> {
    for (let i = 1;; i++) {
      const port = freePort();
      const served = new SignedZones(directory, port);
      const text = [
        "server:",
        `  ip-address: 127.0.0.1@${port}`,
        `  zonesdir: "${directory}"`,
        '  database: ""\n  username: ""\n  chroot: ""\n  server-count: 1\n  hide-version: yes',
        `  pidfile: "${directory}/nsd-${port}.pid"`,
        `  xfrdfile: "${directory}/xfrd-${port}"\n  zonelistfile: "${directory}/zones-${port}"`,
        `  xfrdir: "${directory}"\n  logfile: "${directory}/log-${port}"`,
        "remote-control:\n  control-enable: no",
        ...names.map((name) => `zone:\n  name: "${name}"\n  zonefile: "${name}signed"`),
      ].join("\n");
      await Deno.writeTextFile(`${directory}/nsd-${port}.conf`, `${text}\n`);
      try {
        await served.#open();
        return served;
      } catch (error) {
        await served[Symbol.asyncDispose]();
        if (i === PORT_TRIES_MAX) throw error;
      }
    }
  }

  async #open(): Promise<void> {
    const child = this.#child = new Deno.Command("nsd", {
      args: ["-d", "-c", `${this.directory}/nsd-${this.port}.conf`],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    let hasEnded = false;
    void child.status.then(() => hasEnded = true);
    await until("nsd, answering", async () => {
      if (hasEnded) throw new Error(`nsd ended: see ${this.directory}/log-${this.port}`);
      return await this.#ask(Uint8Array.of(0), Qtype.NS).then(() => true, () => false);
    });
  }

  /** The response to a question with DO, by TCP, where nothing is cut off. */
  ask(name: Uint8Array, type: number): Promise<RrSetResponse> {
    const key = `${type} ${name}`;
    const known = this.#responses.get(key) ?? this.#ask(name, type);
    this.#responses.set(key, known);
    return known;
  }

  /** The whole message that answers a question. */
  async message({ name, type }: Question): Promise<Message> {
    const message = decodeMessage(await this.#exchange(name, type));
    assert(message !== null);
    return message;
  }

  async #ask(name: Uint8Array, type: number): Promise<RrSetResponse> {
    const packet = await this.#exchange(name, type);
    const sections = readSections(packet);
    assert(sections !== null);
    return { rcode: packet[3] & 15, answer: sections.answer, authority: sections.authority };
  }

  async #exchange(name: Uint8Array, type: number): Promise<Uint8Array> {
    const query = encodeQuery(name, type, { edns: { dnssecOk: true } });
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.port });
    await connection.write(Uint8Array.of(query.length >> 8, query.length, ...query));
    const read = async (length: number) => {
      const bytes = new Uint8Array(length);
      for (let at = 0; at < length;) {
        const count = await connection.read(bytes.subarray(at));
        assert(count !== null, "nsd answers");
        at += count;
      }
      return bytes;
    };
    const [high, low] = await read(2);
    return await read((high << 8) | low);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child?.kill("SIGTERM");
    } catch {
      // It has ended.
    }
    await this.#child?.status;
  }
}
