import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import {
  randomPattern,
  referenceAddress,
  type ReferenceDecision,
  referenceDecision,
  type ReferenceRule,
  ruleLine,
  rulesInForce,
} from "../../tests/filter_reference.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { formatIp, parseIp } from "../addr/mod.ts";
import { HashedName, parseName, Qtype, Rcode } from "../dns/mod.ts";
import { NO_RULE, parseRule } from "../filter/mod.ts";
import { type FakePolicy, policyData } from "./fakes.ts";
import { ADDRESSES_MAX, Decision, DEFAULT_GROUP, NO_RCODE, Ruling, Snapshot } from "./mod.ts";

const none = { permissions: "none" } as const;
const SEED = 9;

const RULINGS = ["none", "block", "allow", "answer"] as const;
const CODES: Record<number, string> = {
  [Rcode.NoError]: "NOERROR",
  [Rcode.NXDomain]: "NXDOMAIN",
  [Rcode.Refused]: "REFUSED",
};

function addressesOf(decision: Decision): string[] {
  return [Qtype.A, Qtype.AAAA].flatMap((qtype) =>
    Array.from({ length: decision.count(qtype) }, (_, i) => {
      const bytes = new Uint8Array(qtype === Qtype.A ? 4 : 16);
      decision.copyAddress(qtype, i, bytes, 0);
      return formatIp(bytes);
    })
  );
}

/** What `decide` says of a name, with the deciding rule's text. */
class Asker {
  readonly #decision = new Decision();
  readonly #hashed = new HashedName();

  constructor(readonly snapshot: Snapshot) {}

  ask(name: string, group = DEFAULT_GROUP) {
    const { snapshot } = this;
    const decision = this.#decision;
    const wire = parseName(name)!;
    this.#hashed.read(wire, 0, wire.length, snapshot.data.overlay.seed);
    const ruling = snapshot.decide(wire, this.#hashed, group, decision);
    const rule = decision.rule === NO_RULE ? "" : snapshot.decidedBy(decision.rule).rule;
    assert.equal(ruling === Ruling.None, decision.rule === NO_RULE);
    // Rewrites and hosts addresses do not count for targets of CNAME records.
    const asTarget = snapshot.match(wire, this.#hashed, group);
    if (ruling !== Ruling.Answer) {
      assert.equal(asTarget, ruling === Ruling.Block ? decision.rule : NO_RULE);
    } else if (!decision.isRewrite) assert.equal(asTarget, NO_RULE);
    return {
      ruling: RULINGS[ruling],
      rule,
      code: decision.rcode === NO_RCODE ? null : CODES[decision.rcode],
      addresses: addressesOf(decision),
      isRewrite: decision.isRewrite,
    };
  }

  /** The text of the rule that blocks responses with an address, or "". */
  address(text: string, group = DEFAULT_GROUP): string {
    const ip = parseIp(text)!;
    const bytes = new Uint8Array(ip.length + 5);
    bytes.set(ip, 3);
    const rule = this.snapshot.matchAddress(bytes, 3, ip.length, group);
    return rule === NO_RULE ? "" : this.snapshot.decidedBy(rule).rule;
  }
}

function asker(policy: FakePolicy): Asker {
  return new Asker(new Snapshot(policyData(policy, SEED), 0));
}

/** The answer in a word or two. */
function shown({ ruling, rule, code, addresses }: ReturnType<Asker["ask"]>): string {
  if (ruling === "none") return "none";
  const said = ruling === "answer" ? ` ${code ?? addresses.join(" ")}` : "";
  return `${ruling}${said} by ${rule}`;
}

const [A, B, SIX] = ["192.0.2.1", "192.0.2.2", "2001:db8::1"];
const RW = "||a.example^$dnsrewrite";

const ROWS: readonly (readonly [rules: readonly string[], name: string, want: string])[] = [
  // Rewrites.
  [[`${RW}=${A}`], "a.example", `answer ${A} by ${RW}=${A}`],
  [[`${RW}=${A}`], "x.a.example", `answer ${A} by ${RW}=${A}`],
  [[`|a.example^$dnsrewrite=${A}`], "x.a.example", "none"],
  [[`*.a.example$dnsrewrite=${A}`], "a.example", "none"],
  [
    [`${RW}=${A}`, `${RW}=${SIX}`, `${RW}=${B}`],
    "a.example",
    `answer ${A} ${B} ${SIX} by ${RW}=${A}`,
  ],
  [[`${RW}=${A}`, `||A.example$dnsrewrite=${A}`], "a.example", `answer ${A} by ${RW}=${A}`],
  [[`${RW}=${A}`, `${RW}=NXDOMAIN`], "a.example", `answer NXDOMAIN by ${RW}=NXDOMAIN`],
  [[`${RW}=${A}`, `${RW}=NOERROR`], "a.example", `answer NOERROR by ${RW}=NOERROR`],
  [
    [`${RW}=REFUSED`, `||example^$dnsrewrite=NXDOMAIN`],
    "a.example",
    `answer REFUSED by ${RW}=REFUSED`,
  ],
  [["||a.example^$important", `${RW}=${A}`], "a.example", `answer ${A} by ${RW}=${A}`],
  [["@@||a.example^$important", `${RW}=${A}`], "a.example", `answer ${A} by ${RW}=${A}`],
  // Exceptions to rewrites.
  [[`${RW}=${A}`, "@@||a.example^$dnsrewrite"], "a.example", "none"],
  [[`${RW}=${A}`, "@@||a.example^$dnsrewrite="], "a.example", "none"],
  [[`${RW}=${A}`, "@@|a.example^$dnsrewrite"], "x.a.example", `answer ${A} by ${RW}=${A}`],
  [[`${RW}=${A}`, `${RW}=${B}`, `@@${RW}=${A}`], "a.example", `answer ${B} by ${RW}=${B}`],
  [[`${RW}=${A}`, `@@||example^$dnsrewrite=${A}`], "a.example", "none"],
  [[`${RW}=${A}`, `@@${RW}=${B}`], "a.example", `answer ${A} by ${RW}=${A}`],
  [[`${RW}=NXDOMAIN`, `@@${RW}=NXDOMAIN`], "a.example", "none"],
  [["||a.example^", "@@||a.example^$dnsrewrite"], "a.example", "block by ||a.example^"],
  [
    ["||a.example^$important,dnsrewrite=::1", `@@${RW}`],
    "a.example",
    "answer ::1 by ||a.example^$important,dnsrewrite=::1",
  ],
  [
    ["||a.example^$important,dnsrewrite=::1", "@@||a.example^$important,dnsrewrite"],
    "a.example",
    "none",
  ],
  // $badfilter.
  [[`${RW}=${A}`, `${RW}=${B}`, `${RW}=${A},badfilter`], "a.example", `answer ${B} by ${RW}=${B}`],
  [[`${RW}=${A}`, "||a.example^$badfilter"], "a.example", `answer ${A} by ${RW}=${A}`],
  [
    [`${RW}=${A}`, `|a.example^$dnsrewrite=${A},badfilter`],
    "a.example",
    `answer ${A} by ${RW}=${A}`,
  ],
  [["||a.example^", `${RW}=${A},badfilter`], "a.example", "block by ||a.example^"],
  [[`${RW}=${A}`, `@@${RW}`, `@@${RW},badfilter`], "a.example", `answer ${A} by ${RW}=${A}`],
  // Hosts lines.
  [[`${A} a.example`], "a.example", `answer ${A} by ${A} a.example`],
  [[`${A} a.example`], "x.a.example", "none"],
  [[`${A} a.example b.example`], "B.example", `answer ${A} by ${A} b.example`],
  [
    [`${A} a.example`, `${SIX} a.example`, `${B} a.example`],
    "a.example",
    `answer ${A} ${B} ${SIX} by ${A} a.example`,
  ],
  [[`${A} a.example`, "0.0.0.0 a.example"], "a.example", "block by 0.0.0.0 a.example"],
  [[`${A} a.example`, "||example^"], "a.example", "block by ||example^"],
  [[`${A} a.example`, "@@||example^"], "a.example", "allow by @@||example^"],
  [[`${A} a.example`, "@@||example^$dnsrewrite"], "a.example", `answer ${A} by ${A} a.example`],
  [[`${A} a.example`, `${RW}=${B}`], "a.example", `answer ${B} by ${RW}=${B}`],
  [[":: a.example"], "a.example", "block by :: a.example"],
  [["::1 a.example"], "a.example", "block by ::1 a.example"],
  [["127.1.2.3 a.example"], "a.example", "block by 127.1.2.3 a.example"],
  // A label that looks like what rules about addresses are kept under.
  [["|10.*"], "|0a", "none"],
  [["|10.*"], "|0a.example", "none"],
];

Deno.test("Snapshot.decide() by lists, custom rules and both", none, async (t) => {
  for (const [rules, name, want] of ROWS) {
    await t.step(`${rules.join("  ")}: ${name}`, () => {
      assert.equal(shown(asker({ rules }).ask(name)), want);
      assert.equal(shown(asker({ lists: { a: rules.join("\n") } }).ask(name)), want);
      // In reverse, all that is left open is which of several rules is named first.
      const lists = Object.fromEntries(rules.map((rule, i) => [`list ${i}`, rule]));
      assert.equal(shown(asker({ lists }).ask(name)), want);
      const half = { lists: { a: rules.slice(1).join("\n") }, rules: rules.slice(0, 1) };
      assert.equal(shown(asker(half).ask(name)), want);
    });
  }
});

Deno.test("Snapshot.decide() reads names and lines as people write them", none, async (t) => {
  const rows = [
    ["\ufeff||müller.example^\r\n", "xn--mller-kva.example", "block by ||müller.example^"],
    [
      " ||XN--MLLER-KVA.example.^ \t\r\n",
      "XN--mller-KVA.example",
      "block by ||XN--MLLER-KVA.example.^",
    ],
    [
      "\ufeff192.0.2.1\tMüller.example # mine\r\n",
      "xn--mller-kva.example",
      "answer 192.0.2.1 by 192.0.2.1 Müller.example",
    ],
    [
      "||A.Example.^$dnsrewrite=NXDOMAIN # why\r\n",
      "a.example",
      "answer NXDOMAIN by ||A.Example.^$dnsrewrite=NXDOMAIN",
    ],
  ] as const;
  for (const [text, name, want] of rows) {
    await t.step(JSON.stringify(text), () => {
      assert.equal(shown(asker({ lists: { a: text } }).ask(name)), want);
    });
  }
});

Deno.test("Snapshot.decide() lets nothing but a rewrite before a blocked service", none, () => {
  const policy: FakePolicy = {
    lists: {
      "service:video": "||video.example^\n||answered.example^\n",
      lifts: [
        "@@||video.example^$important",
        "||video.example^$badfilter",
        "192.0.2.1 video.example",
        "||answered.example^$dnsrewrite=192.0.2.2",
      ].join("\n"),
    },
    rules: ["@@||video.example^$important", "||video.example^$badfilter"],
    groups: { default: { lists: ["lifts"], services: ["video"] }, free: { lists: ["lifts"] } },
    clients: { one: { addresses: ["192.0.2.9"], group: "free" } },
  };
  const one = asker(policy);
  assert.equal(shown(one.ask("www.video.example")), "block by ||video.example^");
  assert.equal(shown(one.ask("video.example")), "block by ||video.example^");
  assert.equal(
    shown(one.ask("answered.example")),
    "answer 192.0.2.2 by ||answered.example^$dnsrewrite=192.0.2.2",
  );
  const free = one.snapshot.groupOf(one.snapshot.clientAt(parseIp("192.0.2.9")!, 0, 4));
  assert.equal(shown(one.ask("video.example", free)), "allow by @@||video.example^$important");
});

Deno.test("Snapshot.decide() keeps each service's exceptions to itself", none, () => {
  const one = asker({
    lists: {
      "service:a": "||video.example^\n@@||ok.video.example^\n",
      "service:b": "||both.video.example^\n@@||both.video.example^\n||x.ok.video.example^\n",
    },
    groups: { default: { services: ["a", "b"] } },
  });
  assert.equal(shown(one.ask("video.example")), "block by ||video.example^");
  assert.equal(shown(one.ask("ok.video.example")), "none");
  assert.equal(shown(one.ask("both.video.example")), "block by ||video.example^");
  assert.equal(shown(one.ask("x.ok.video.example")), "block by ||x.ok.video.example^");
});

Deno.test("Snapshot.decide() says nothing where nothing is filtered", none, () => {
  const rules = ["||a.example^$dnsrewrite=192.0.2.1", "192.0.2.1 b.example", "|10.*"];
  for (
    const policy of [
      { rules, settings: { protection: false } },
      { rules, pausedUntilMs: 1 },
      { rules, groups: { default: { filtering: false } } },
    ]
  ) {
    const off = asker(policy);
    assert.equal(shown(off.ask("a.example")), "none");
    assert.equal(shown(off.ask("b.example")), "none");
    assert.equal(off.address("10.0.0.1"), "");
    assert.equal(off.snapshot.hasAddressRules(DEFAULT_GROUP), false);
  }
});

Deno.test("Snapshot.decide() answers with many addresses, and bounds them", none, () => {
  const count = ADDRESSES_MAX + 44;
  const lines = Array.from({ length: count }, (_, i) => `10.0.${i >> 8}.${i & 255} a.example`);
  const { addresses } = asker({ lists: { a: lines.join("\n") } }).ask("a.example");
  assert.equal(addresses.length, ADDRESSES_MAX);
  assert.equal(addresses[255], "10.0.0.255");
  const { ruling } = asker({ lists: { a: lines.join("\n") } }).ask("x.a.example");
  assert.equal(ruling, "none");
});

Deno.test("Snapshot.matchAddress() blocks by octets and whole addresses", none, async (t) => {
  const rows: readonly (readonly [rules: string[], address: string, want: string])[] = [
    [["|10.*"], "10.9.9.9", "|10.*"],
    [["|10.*"], "11.1.2.3", ""],
    [["|10.*"], "100.1.2.3", ""],
    [["|10.*"], "::ffff:10.1.2.3", "|10.*"],
    [["|10.*"], "2001:db8::a00:1", ""],
    [["|10.*"], "a00::", ""],
    [["|192.168.*"], "192.168.1.1", "|192.168.*"],
    [["|192.168.*"], "192.169.1.1", ""],
    [["|192.0.2.*"], "192.0.2.200", "|192.0.2.*"],
    [["|192.0.2.7"], "192.0.2.7", "|192.0.2.7"],
    [["|192.0.2.7^"], "192.0.2.7", "|192.0.2.7^"],
    [["||192.0.2.7^"], "192.0.2.7", "||192.0.2.7^"],
    [["192.0.2.7"], "192.0.2.7", "192.0.2.7"],
    [["|192.0.2.7"], "192.0.2.70", ""],
    [["|::ffff:192.0.2.7"], "192.0.2.7", "|::ffff:192.0.2.7"],
    [["|2001:DB8::1"], "2001:db8::1", "|2001:DB8::1"],
    [["|2001:db8::1"], "2001:db8::2", ""],
    // "A" and "a" are one letter in a name, 0x41 and 0x61 are two octets.
    [["|65.*"], "97.1.1.1", ""],
    [["@@|10.*", "|10.*"], "10.0.0.1", ""],
    [["@@|10.*", "|10.0.0.1"], "10.0.0.1", ""],
    [["|10.*", "@@|10.0.0.1"], "10.0.0.1", ""],
    [["|10.*", "@@|10.0.0.1"], "10.0.0.2", "|10.*"],
    [["@@|10.*", "|10.0.0.1$important"], "10.0.0.1", "|10.0.0.1$important"],
    [["@@|10.*$important", "|10.0.0.1$important"], "10.0.0.1", ""],
    [["|10.*", "|10.0.0.1"], "10.0.0.1", "|10.0.0.1"],
    [["|10.*", "|10.*$badfilter"], "10.0.0.1", ""],
    [["|10.0.0.1^", "|10.0.0.1$badfilter"], "10.0.0.1", ""],
    [["|10.*$important", "|10.*$badfilter"], "10.0.0.1", "|10.*$important"],
    [["@@|10.*", "|10.*", "@@|10.*$badfilter"], "10.0.0.1", "|10.*"],
  ];
  for (const [rules, address, want] of rows) {
    await t.step(`${rules.join("  ")}: ${address}`, () => {
      const half = { lists: { a: rules.slice(1).join("\n") }, rules: rules.slice(0, 1) };
      for (const policy of [{ rules }, { lists: { a: rules.join("\n") } }, half]) {
        assert.equal(asker(policy).address(address), want);
      }
    });
  }
});

Deno.test("Snapshot.hasAddressRules() knows the group's lists", none, () => {
  const one = asker({
    lists: { names: "||10.example^\n10.0.0.1 a.example\n", addresses: "|10.*\n" },
    groups: { default: { lists: ["names"] }, other: { lists: ["names", "addresses"] } },
    clients: { one: { addresses: ["192.0.2.9"], group: "other" } },
  });
  const other = one.snapshot.groupOf(one.snapshot.clientAt(parseIp("192.0.2.9")!, 0, 4));
  assert.equal(one.snapshot.hasAddressRules(DEFAULT_GROUP), false);
  assert.equal(one.address("10.0.0.1"), "");
  assert.equal(one.snapshot.hasAddressRules(other), true);
  assert.equal(one.address("10.0.0.1", other), "|10.*");
  assert.equal(asker({ rules: ["|10.*"] }).snapshot.hasAddressRules(DEFAULT_GROUP), true);
});

const LABELS = ["ads", "b", "www", "x-1", "_y"];
const VALUES = [A, B, SIX, "2001:db8::2", "NXDOMAIN", "REFUSED", "NOERROR"];
const RESPONSE_ADDRESSES = [
  "10.0.0.1",
  "10.0.1.1",
  "10.1.0.1",
  "192.0.2.1",
  "2001:db8::1",
  "2001:db8::2",
  "::ffff:10.0.0.1",
];
const PATTERNS = ["10.*", "10.0.*", "10.0.0.*", "10.0.0.1", "192.*", "2001:db8::1"];
const [ROUNDS, NAMES_A_ROUND, LISTS, SERVICES] = [300, 40, 5, 2];
/** Sources: the lists, then the services, then the custom rules. */
const CUSTOM = LISTS + SERVICES;

function randomName(prng: Prng): string {
  const labels = Array.from({ length: prng.int(4) }, () => prng.pick(LABELS));
  return [...labels, prng.pick(["test", "example"])].join(".");
}

function randomRule(prng: Prng): ReferenceRule {
  const source = prng.int(CUSTOM + 1);
  const isService = source >= LISTS && source < CUSTOM;
  const named = ["plain", "domain", "domain", "exact", "below"] as const;
  const form = prng.pick(isService ? named : [...named, "hosts", "hosts", "address"] as const);
  const isHosts = form === "hosts";
  const common = {
    ...(!isHosts && form !== "address" && prng.chance(0.25)
      ? randomPattern(prng)
      : { form, name: form === "address" ? prng.pick(PATTERNS) : randomName(prng) }),
    source,
    exception: !isHosts && prng.chance(0.3),
    important: !isHosts && prng.chance(0.25),
    badfilter: !isHosts && prng.chance(0.15),
  };
  if (isHosts) {
    return prng.chance(0.7) ? { ...common, address: prng.pick(VALUES.slice(0, 4)) } : common;
  }
  if (isService || form === "address" || prng.chance(0.6)) return common;
  return { ...common, rewrite: common.exception && prng.chance(0.5) ? "" : prng.pick(VALUES) };
}

/** Some of the sources with these numbers. */
function some(prng: Prng, first: number, end: number): Set<number> {
  const share = prng.pick([0.2, 0.6, 1]);
  const all = Array.from({ length: end - first }, (_, i) => first + i);
  return new Set(all.filter(() => prng.chance(share)));
}

/** A policy with the rules of each source, of which the group has some. */
function policyWith(
  texts: readonly (readonly string[])[],
  lists: ReadonlySet<number>,
  services: ReadonlySet<number>,
): FakePolicy {
  const nameOf = (source: number) => source < LISTS ? `list ${source}` : `service:s${source}`;
  return {
    lists: Object.fromEntries(
      texts.slice(0, CUSTOM).map((lines, source) => [nameOf(source), lines.join("\n")]),
    ),
    rules: texts[CUSTOM],
    groups: {
      default: {
        lists: Array.from(lists, nameOf),
        services: Array.from(services, (source) => `s${source}`),
      },
    },
  };
}

function check(got: ReturnType<Asker["ask"]>, want: ReferenceDecision, message: string): void {
  assert.equal(got.ruling, want.ruling, message);
  if (want.ruling !== "none") assert(want.deciding.includes(got.rule), `${got.rule}, ${message}`);
  if (want.codes.length > 0) assert(want.codes.includes(got.code ?? ""), message);
  else assert.equal(got.code, null, message);
  assert.deepEqual(got.addresses.toSorted(), want.addresses.toSorted(), message);
}

Deno.test("Snapshot agrees with the reference", none, () => {
  const prng = new Prng(seedFromEnv());
  const met = { none: 0, block: 0, allow: 0, answer: 0, blocked: 0, protected: 0 };
  const serviceSources = new Set(Array.from({ length: SERVICES }, (_, i) => LISTS + i));
  for (let round = 0; round < ROUNDS; round++) {
    const rules = Array.from({ length: 1 + prng.int(80) }, () => randomRule(prng));
    const texts = Array.from(
      { length: CUSTOM + 1 },
      (_, source) => rules.filter((rule) => rule.source === source).map(ruleLine),
    );
    const [lists, services] = [some(prng, 0, LISTS), some(prng, LISTS, CUSTOM)];
    const one = asker(policyWith(texts, lists, services));
    const active = new Set([...lists, CUSTOM]);
    const inForce = rulesInForce(rules, new Set([...active, ...services]), serviceSources);
    const where = `seed ${prng.seed}, round ${round}`;
    for (let i = 0; i < NAMES_A_ROUND; i++) {
      const name = randomName(prng);
      const want = referenceDecision(inForce, active, services, name);
      check(one.ask(name), want, `${name}, ${where}`);
      met[want.ruling]++;
    }
    for (const text of RESPONSE_ADDRESSES) {
      const deciding = referenceAddress(inForce, active, parseIp(text)!);
      const isBlocked = deciding.length > 0 && !deciding[0].exception;
      const got = one.address(text);
      assert.equal(got !== "", isBlocked, `${text}, ${where}`);
      if (isBlocked) assert(deciding.some((rule) => ruleLine(rule) === got), `${text}, ${where}`);
      met[isBlocked ? "blocked" : "protected"]++;
    }
  }
  assert(Object.values(met).every((count) => count > 200), JSON.stringify(met));
});

const REAL_LISTS = new URL("../../../shared/lists/", import.meta.url);
const ABSENT = await Deno.stat(REAL_LISTS).then(() => false, () => true);
if (ABSENT) console.warn("skipped: real lists are in ../shared/lists");
const LINES_A_LIST = 2_000;
const REAL_NAMES = 400;

Deno.test("Snapshot agrees with the reference on real lists", {
  ignore: ABSENT,
  permissions: { read: [REAL_LISTS] },
}, async () => {
  const prng = new Prng(seedFromEnv());
  const names = [
    "1hosts-pro-2021.adguard.gz",
    "adguard-sdn-2019.adguard.gz",
    "dandelion-agh-compilation.adguard.gz",
    "someonewhocares.hosts.gz",
    "stevenblack-extended-2019.hosts.gz",
  ];
  assert.equal(names.length, LISTS);
  const rules: ReferenceRule[] = [];
  const texts: string[][] = Array.from({ length: CUSTOM + 1 }, () => []);
  for (const [source, name] of names.entries()) {
    const text = new TextDecoder().decode(
      gunzipSync(await Deno.readFile(new URL(name, REAL_LISTS))),
    );
    const lines = text.split("\n");
    for (let i = 0; i < LINES_A_LIST; i++) {
      const line = prng.pick(lines);
      texts[source].push(line);
      const parsed = parseRule(line);
      if (parsed.kind === "skipped") continue;
      for (const rule of parsed.rules) {
        if (rule.kind === "address") continue; // Names are asked for here.
        assert(rule.kind === "name", `${line}: these lists answer nothing`);
        const { form, name, exception, important, badfilter } = rule;
        rules.push({ source, form, name, exception, important, badfilter });
      }
    }
  }
  const active = new Set(names.keys());
  const one = asker(policyWith(texts, active, new Set()));
  const inForce = rulesInForce(rules, active);
  // What a pattern covers is asked for elsewhere: it is no name itself.
  const named = rules.filter(({ form }) => form !== "pattern" && form !== "regex");
  let blocked = 0;
  for (let i = 0; i < REAL_NAMES; i++) {
    const { name } = prng.pick(named);
    const asked = prng.pick([name, `www.${name}`, name.slice(name.indexOf(".") + 1), `x${name}`]);
    const want = referenceDecision(inForce, active, new Set(), asked);
    assert.equal(one.ask(asked).ruling, want.ruling, `${asked}, seed ${prng.seed}`);
    if (want.ruling === "block") blocked++;
  }
  assert(blocked > REAL_NAMES / 10, `${blocked} of ${REAL_NAMES} are blocked`);
});

const DECISIONS = 200_000;
/** Anything made by each decision would be several times this. */
const GARBAGE_BYTES_MAX = 8 * DECISIONS;

Deno.test("Snapshot.decide() and matchAddress() leave no garbage", none, () => {
  const { snapshot } = asker({
    lists: {
      a: `||ads.example^\n${A} host.example\n${SIX} host.example\n|10.*\n||tr*.video.example^\n` +
        "/^a[a-z]?\\.[a-c]\\./\n@@-ok.\n",
      "service:s": "||video.example^\n",
    },
    rules: [`||go.example^$dnsrewrite=${A}`, `@@||not.example^$dnsrewrite`, "@@||ok.example^"],
    groups: { default: { lists: ["a"], services: ["s"] } },
  });
  const names = [
    "www.ads.example",
    "host.example",
    "a.video.example",
    "a.b.go.example",
    "x.ok.example",
    "a.b.c.d.test",
    "not.example",
    "x-ok.track.video.example",
  ];
  const questions = names.map((name) => {
    const wire = parseName(name)!;
    const hashed = new HashedName();
    hashed.read(wire, 0, wire.length, SEED);
    return { wire, hashed };
  });
  const addresses = ["10.0.0.1", "192.0.2.1", "2001:db8::1", "::ffff:10.0.0.1"].map((text) =>
    parseIp(text)!
  );
  const decision = new Decision();
  const run = () => {
    let [decided, blocked] = [0, 0];
    for (let i = 0; i < DECISIONS; i++) {
      const { wire, hashed } = questions[i & 7];
      if (snapshot.decide(wire, hashed, DEFAULT_GROUP, decision) !== Ruling.None) decided++;
      const ip = addresses[i & 3];
      if (snapshot.matchAddress(ip, 0, ip.length, DEFAULT_GROUP) !== NO_RULE) blocked++;
    }
    return [decided, blocked];
  };
  run(); // Until it is compiled for speed.
  let grownBytes = 0;
  for (let i = 0; i < 3; i++) {
    const beforeBytes = Deno.memoryUsage().heapUsed;
    assert.deepEqual(run(), [DECISIONS * 7 / 8, DECISIONS / 2]);
    grownBytes = Math.max(grownBytes, Deno.memoryUsage().heapUsed - beforeBytes);
  }
  assert(grownBytes < GARBAGE_BYTES_MAX, `${grownBytes} bytes`);
});
