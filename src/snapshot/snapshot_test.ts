import assert from "node:assert/strict";
import { formatIp, parseIp } from "../addr/mod.ts";
import { HashedName, parseName, Qtype } from "../dns/mod.ts";
import { NO_RULE } from "../filter/mod.ts";
import { InvariantError } from "../errors.ts";
import type { Settings } from "../model/mod.ts";
import { type FakePolicy, policyData } from "./fakes.ts";
import {
  BlockForm,
  DEFAULT_GROUP,
  memoryOf,
  NO_CLIENT,
  NO_RECORDS,
  REEVALUATE_MS,
  Snapshot,
} from "./mod.ts";

const none = { permissions: "none" } as const;
const SEED = 5;
/** A Monday at noon, UTC. */
const NOW_MS = Date.parse("2026-01-05T12:00:00Z");

function snapshotOf(policy: FakePolicy, nowMs = NOW_MS): Snapshot {
  return new Snapshot(policyData(policy, SEED, 3), nowMs);
}

function hashed(text: string): { wire: Uint8Array; name: HashedName } {
  const name = new HashedName();
  const wire = parseName(text);
  assert.ok(wire !== null, text);
  name.read(wire, 0, wire.length, SEED);
  return { wire, name };
}

/** Which client an address is of, and its group; by name. */
function identified(snapshot: Snapshot, address: string): string {
  const ip = parseIp(address)!;
  const client = snapshot.clientAt(ip, 0, ip.length);
  const { name } = snapshot.group(snapshot.groupOf(client));
  return `${client === NO_CLIENT ? "nobody" : snapshot.client(client).name} in ${name}`;
}

function groupAt(snapshot: Snapshot, address: string): number {
  const ip = parseIp(address)!;
  return snapshot.groupOf(snapshot.clientAt(ip, 0, ip.length));
}

/** The deciding rule in words, or "" where none blocks. */
function decided(snapshot: Snapshot, text: string, group = DEFAULT_GROUP): string {
  const { wire, name } = hashed(text);
  const rule = snapshot.match(wire, name, group);
  if (rule === NO_RULE) return "";
  const { rule: ruleText, list } = snapshot.decidedBy(rule);
  const shown = `${ruleText} (${list.name})`;
  assert.equal(new TextDecoder().decode(snapshot.blockedText(rule)), shown);
  assert.equal(snapshot.blockedText(rule), snapshot.blockedText(rule), "made once");
  return shown;
}

Deno.test("Snapshot.match() blocks by the group's lists, and knows who decided", none, () => {
  const lists = {
    a: "||ads.example^\n",
    b: "@@||good.ads.example^\n",
    c: "||bad.good.ads.example^$important\n",
  };
  const snapshot = snapshotOf({ lists });
  assert.equal(snapshot.generation, 3);
  const rows = [
    ["ads.example", "||ads.example^ (a)"],
    ["www.ads.example", "||ads.example^ (a)"],
    ["good.ads.example", ""],
    ["bad.good.ads.example", "||bad.good.ads.example^$important (c)"],
    ["example", ""],
  ] as const;
  for (const [name, want] of rows) assert.equal(decided(snapshot, name), want, name);
});

Deno.test("Snapshot.match() reaches sources beyond the first 32", none, () => {
  const all = Array.from({ length: 70 }, (_, i) => [`list ${i}`, `||n${i}.example^\n`] as const);
  const snapshot = snapshotOf({ lists: Object.fromEntries(all) });
  for (let i = 0; i < 70; i++) {
    assert.equal(decided(snapshot, `n${i}.example`), `||n${i}.example^ (list ${i})`);
  }
});

Deno.test("Snapshot blocks nothing without rules or protection", none, () => {
  const lists = { a: "||ads.example^\n" };
  assert.equal(decided(snapshotOf({}), "ads.example"), "");
  assert.equal(decided(snapshotOf({ lists, settings: { protection: false } }), "ads.example"), "");
  assert.throws(() => snapshotOf({}).decidedBy(0), InvariantError);
  const data = policyData({ lists }, SEED);
  assert.throws(
    () => new Snapshot({ ...data, rules: new SharedArrayBuffer(4_096) }, NOW_MS),
    InvariantError,
    "rules of another version",
  );
});

Deno.test("Snapshot takes the form of blocked answers from the settings", none, () => {
  const custom = { blocking_ipv4: "192.0.2.7", blocking_ipv6: "2001:db8::7" };
  const rows: readonly (readonly [Partial<Settings>, BlockForm, string, string])[] = [
    [{}, BlockForm.Address, "0.0.0.0", "::"],
    [{ block_response: "null_ip", ...custom }, BlockForm.Address, "0.0.0.0", "::"],
    [{ block_response: "nxdomain" }, BlockForm.NxDomain, "0.0.0.0", "::"],
    [{ block_response: "refused" }, BlockForm.Refused, "0.0.0.0", "::"],
    [{ block_response: "custom_ip", ...custom }, BlockForm.Address, "192.0.2.7", "2001:db8::7"],
    [{ block_response: "custom_ip" }, BlockForm.Address, "0.0.0.0", "::"],
    [
      { block_response: "custom_ip", blocking_ipv6: "2001:db8::7" },
      BlockForm.Address,
      "0.0.0.0",
      "2001:db8::7",
    ],
  ];
  for (const [settings, form, ipv4, ipv6] of rows) {
    const snapshot = snapshotOf({ settings: { ...settings, block_ttl: 77 } });
    const { blockForm, blockTtl, blockIpv4, blockIpv6 } = snapshot;
    assert.deepEqual([blockForm, blockTtl], [form, 77]);
    assert.deepEqual([formatIp(blockIpv4), formatIp(blockIpv6)], [ipv4, ipv6]);
    assert.deepEqual([blockIpv4.length, blockIpv6.length], [4, 16]);
  }
});

Deno.test("Snapshot keeps few texts ready, and gives every one", none, () => {
  const count = 5_000; // More than are kept.
  const lines = Array.from({ length: count }, (_, i) => `||n${i}.example^`);
  const snapshot = snapshotOf({ lists: { a: lines.join("\n") } });
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < count; i += 7) {
      assert.equal(decided(snapshot, `n${i}.example`), `||n${i}.example^ (a)`);
    }
  }
  for (let i = 0; i < count; i++) assert.notEqual(decided(snapshot, `n${i}.example`), "");
});

Deno.test(
  "Snapshot.clientAt() takes the longest prefix, and others are in the default group",
  none,
  () => {
    const snapshot = snapshotOf({
      groups: { kids: {}, guests: {} },
      clients: {
        house: { addresses: ["192.0.2.0/24", "2001:db8::/64"], group: "guests" },
        tablet: { addresses: ["192.0.2.7", "2001:db8::7"], group: "kids" },
        desk: { addresses: ["192.0.2.64/26"] },
        named: { ids: ["phone"], group: "kids" },
      },
    });
    const rows = [
      ["192.0.2.1", "house in guests"],
      ["192.0.2.7", "tablet in kids"],
      ["192.0.2.64", "desk in default"],
      ["192.0.3.1", "nobody in default"],
      ["127.0.0.1", "nobody in default"],
      ["2001:db8::1", "house in guests"],
      ["2001:db8::7", "tablet in kids"],
      ["2001:db8:0:1::7", "nobody in default"],
    ] as const;
    for (const [address, want] of rows) assert.equal(identified(snapshot, address), want, address);
    assert.equal(snapshot.group(DEFAULT_GROUP).id, "gr_0000000000000000");
    assert.equal(identified(snapshotOf({}), "192.0.2.1"), "nobody in default");
  },
);

Deno.test("Snapshot.clientWithId() knows every ID, in any case", none, () => {
  const clients = Object.fromEntries(
    Array.from({ length: 200 }, (_, i) => [`client ${i}`, { ids: [`c${i}`, `id-${i}-b`] }]),
  );
  const snapshot = snapshotOf({ clients });
  const find = (id: string) => {
    const bytes = new TextEncoder().encode(`..${id}..`);
    return snapshot.clientWithId(bytes, 2, id.length);
  };
  for (let i = 0; i < 200; i++) {
    for (const id of [`c${i}`, `C${i}`, `ID-${i}-b`]) {
      assert.equal(snapshot.client(find(id)).name, `client ${i}`, id);
    }
  }
  for (const id of ["", "c", "c200", "id-1-", "id-1-bb"]) assert.equal(find(id), NO_CLIENT, id);
  assert.equal(snapshotOf({}).clientWithId(Uint8Array.of(0x61), 0, 1), NO_CLIENT);
});

const GROUPS: FakePolicy = {
  lists: {
    ads: "||ads.example^\n||both.example^\n",
    adult: "||adult.example^\n@@||both.example^\n",
    off: "||off.example^\n",
    unused: "||unused.example^\n",
    "service:video": "||video.example^\n@@||ok.video.example^\n",
  },
  disabledLists: ["off"],
  rules: ["||custom.example^", "@@||video.example^$important"],
  groups: {
    default: { lists: ["ads", "off", "missing"] },
    kids: { lists: ["ads", "adult"], services: ["video", "missing"] },
    free: { filtering: false, safeSearch: true, lists: ["ads"], services: ["video"] },
    safe: { safeSearch: true },
  },
  clients: {
    tablet: { addresses: ["192.0.2.1"], group: "kids" },
    server: { addresses: ["192.0.2.2"], group: "free" },
    laptop: { addresses: ["192.0.2.3"], group: "safe" },
  },
};

Deno.test(
  "Snapshot.match() gives each group its lists, services and custom rules",
  none,
  async (t) => {
    const snapshot = snapshotOf(GROUPS);
    const [nobody, kids, free, safe] = ["192.0.2.9", "192.0.2.1", "192.0.2.2", "192.0.2.3"];
    const rows = [
      ["ads.example", nobody, "||ads.example^ (ads)"],
      ["ads.example", kids, "||ads.example^ (ads)"],
      ["ads.example", free, ""],
      ["ads.example", safe, ""],
      ["adult.example", nobody, ""],
      ["adult.example", kids, "||adult.example^ (adult)"],
      // An exception lifts a block where the group has its list.
      ["both.example", nobody, "||both.example^ (ads)"],
      ["both.example", kids, ""],
      // Off, absent or in no group: as if it were not there.
      ["off.example", nobody, ""],
      ["unused.example", nobody, ""],
      // Custom rules are for every group that is filtered.
      ["custom.example", nobody, "||custom.example^ (custom rules)"],
      ["custom.example", safe, "||custom.example^ (custom rules)"],
      ["custom.example", free, ""],
      // No list and no custom rule lifts a service; its own exceptions do.
      ["video.example", nobody, ""],
      ["video.example", kids, "||video.example^ (service:video)"],
      ["ok.video.example", kids, ""],
      ["video.example", free, ""],
    ] as const;
    for (const [name, address, want] of rows) {
      await t.step(`${name} for ${address}`, () => {
        assert.equal(decided(snapshot, name, groupAt(snapshot, address)), want);
      });
    }
    const flags = [nobody, kids, free, safe].map((address) => groupAt(snapshot, address)).map(
      (group) => [snapshot.filters(group), snapshot.safeSearch(group)],
    );
    assert.deepEqual(flags, [[true, false], [true, false], [false, false], [true, true]]);
  },
);

Deno.test("Snapshot.match() ranks custom rules and lists together", none, async (t) => {
  const rows = [
    ["||a.example^", "@@||a.example^", "a.example", ""],
    ["@@||a.example^", "||a.example^", "a.example", ""],
    [
      "@@||a.example^",
      "||a.example^$important",
      "a.example",
      "||a.example^$important (custom rules)",
    ],
    ["||a.example^$important", "@@||a.example^", "a.example", "||a.example^$important (ads)"],
    ["||a.example^$important", "@@||a.example^$important", "a.example", ""],
    // Of one rank the longer name decides, and then the custom rule.
    ["||a.example^", "||example^", "www.a.example", "||a.example^ (ads)"],
    ["||example^", "||a.example^", "www.a.example", "||a.example^ (custom rules)"],
    ["||a.example^", "||a.example^", "a.example", "||a.example^ (custom rules)"],
    // Across the two, `$badfilter` means the same rule in the same form.
    ["||a.example^", "||a.example^$badfilter", "a.example", ""],
    ["|a.example^\n||a.example^", "||a.example^$badfilter", "a.example", "|a.example^ (ads)"],
    ["@@||a.example^\n||a.example^", "@@||a.example^$badfilter", "a.example", "||a.example^ (ads)"],
    [
      "||a.example^$important",
      "||a.example^$badfilter",
      "a.example",
      "||a.example^$important (ads)",
    ],
    ["||a.example^$badfilter", "||a.example^", "a.example", ""],
    ["||b.example^$badfilter", "||a.example^", "a.example", "||a.example^ (custom rules)"],
    ["0.0.0.0 a.example", "0.0.0.0 a.example$badfilter", "a.example", "0.0.0.0 a.example (ads)"],
  ] as const;
  for (const [list, rule, name, want] of rows) {
    await t.step(`${list.replace("\n", " and ")}, custom ${rule}`, () => {
      const snapshot = snapshotOf({ lists: { ads: list }, rules: [rule] });
      assert.equal(decided(snapshot, name), want);
    });
  }
});

Deno.test("a custom $badfilter leaves services alone", none, () => {
  const snapshot = snapshotOf({
    lists: { "service:video": "||video.example^\n", ads: "||video.example^\n" },
    rules: ["||video.example^$badfilter", "two\nlines^"],
    groups: { default: { services: ["video"], lists: ["ads"] } },
  });
  assert.equal(decided(snapshot, "video.example"), "||video.example^ (service:video)");
});

const NIGHT = {
  time_zone: "Europe/Berlin",
  windows: [{ days: ["mon"], start: "20:00", end: "06:00" }],
} as const;

Deno.test("Snapshot.evaluate() switches lists and services at their minute", none, () => {
  const day = { time_zone: "UTC", windows: [{ days: ["mon"], start: "12:01", end: "12:02" }] };
  const snapshot = snapshotOf({
    lists: { ads: "||ads.example^\n", "service:video": "||video.example^\n" },
    groups: { default: { lists: ["ads@day", "ads@gone"], services: ["video@night"] } },
    schedules: {
      day: { ...day, windows: [{ ...day.windows[0], days: ["mon"] }] },
      night: { ...NIGHT, windows: [{ ...NIGHT.windows[0], days: ["mon"] }] },
    },
  });
  const rows = [
    ["2026-01-05T12:00:00Z", "", "", 30_000],
    ["2026-01-05T12:00:45Z", "", "", 15_000],
    ["2026-01-05T12:01:00Z", "||ads.example^ (ads)", "", 30_000],
    ["2026-01-05T12:01:59.900Z", "||ads.example^ (ads)", "", 100],
    ["2026-01-05T12:02:00Z", "", "", 30_000],
    ["2026-01-05T19:00:00Z", "", "||video.example^ (service:video)", 30_000],
    // The clock was set back, and forward.
    ["2026-01-05T12:01:30Z", "||ads.example^ (ads)", "", 30_000],
    ["2026-01-06T04:59:59Z", "", "||video.example^ (service:video)", 1_000],
    ["2026-01-06T05:00:00Z", "", "", 30_000],
  ] as const;
  for (const [at, ads, video, dueMs] of rows) {
    const nowMs = Date.parse(at);
    assert.equal(snapshot.evaluate(nowMs) - nowMs, dueMs, at);
    assert.deepEqual([decided(snapshot, "ads.example"), decided(snapshot, "video.example")], [
      ads,
      video,
    ], at);
  }
});

Deno.test("Snapshot.evaluate() ends a pause, and knows when time does nothing", none, () => {
  const policy = { lists: { ads: "||ads.example^\n" }, rules: ["||custom.example^"] };
  assert.equal(snapshotOf(policy).evaluate(NOW_MS), Infinity);
  const paused = snapshotOf({ ...policy, pausedUntilMs: NOW_MS + 45_000 });
  assert.deepEqual([decided(paused, "ads.example"), decided(paused, "custom.example")], ["", ""]);
  assert.equal(paused.evaluate(NOW_MS), NOW_MS + REEVALUATE_MS);
  assert.equal(paused.evaluate(NOW_MS + 44_999), NOW_MS + 45_000);
  assert.equal(decided(paused, "ads.example"), "");
  assert.equal(paused.evaluate(NOW_MS + 45_000), Infinity);
  assert.equal(decided(paused, "ads.example"), "||ads.example^ (ads)");
  // Protection that is off stays so when the pause ends.
  const off = snapshotOf({ ...policy, settings: { protection: false }, pausedUntilMs: NOW_MS + 1 });
  off.evaluate(NOW_MS + 1);
  assert.equal(decided(off, "ads.example"), "");
});

Deno.test(
  "LocalRecords.find() prefers the name itself, then the closest wildcard",
  none,
  async (t) => {
    const { records } = snapshotOf({
      records: [
        "nas.home.example A 192.0.2.1",
        "nas.home.example A 192.0.2.2 60",
        "nas.home.example AAAA 2001:db8::1",
        "*.home.example A 192.0.2.9",
        "*.deep.home.example A 192.0.2.8",
        "deep.home.example AAAA 2001:db8::8",
        "Alias.Example CNAME NAS.home.example",
        "*.only.example CNAME nas.home.example",
        "second.example A 192.0.2.1",
        "8.2.0.192.in-addr.arpa PTR own.example",
        "own.example A 192.0.2.8",
        "loop.example A 127.0.0.2",
        "none.example AAAA ::",
      ],
    });
    const rows = [
      ["nas.home.example", "300 192.0.2.1, 60 192.0.2.2, 300 2001:db8::1"],
      ["NAS.Home.Example", "300 192.0.2.1, 60 192.0.2.2, 300 2001:db8::1"],
      ["x.home.example", "300 192.0.2.9"],
      ["y.x.home.example", "300 192.0.2.9"],
      ["x.nas.home.example", "300 192.0.2.9"],
      ["x.deep.home.example", "300 192.0.2.8"],
      ["z.y.x.deep.home.example", "300 192.0.2.8"],
      ["deep.home.example", "300 2001:db8::8"],
      ["home.example", ""],
      ["example", ""],
      ["alias.example", "300 NAS.home.example"],
      ["x.alias.example", ""],
      ["only.example", ""],
      ["x.only.example", "300 nas.home.example"],
      ["x\\.home.example", ""],
      // Addresses lead back to the first name that has them, where nothing else is said.
      ["1.2.0.192.in-addr.arpa", "300 nas.home.example"],
      ["2.2.0.192.in-addr.arpa", "60 nas.home.example"],
      [`1.${"0.".repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa`, "300 nas.home.example"],
      ["8.2.0.192.in-addr.arpa", "300 own.example"],
      ["9.2.0.192.in-addr.arpa", ""],
      ["2.0.0.127.in-addr.arpa", ""],
      [`${"0.".repeat(32)}ip6.arpa`, ""],
    ] as const;
    for (const [text, want] of rows) {
      await t.step(text, () => {
        const { wire, name } = hashed(text);
        const set = records.find(wire, name);
        const numbers = set === NO_RECORDS
          ? []
          : Array.from({ length: records.count(set) }, (_, i) => records.first(set) + i);
        const shown = numbers.map((record) => `${records.ttl(record)} ${records.text(record)}`);
        assert.equal(shown.join(", "), want);
      });
    }
    assert.ok(snapshotOf({}).records.isEmpty);
  },
);

Deno.test("LocalRecords.find() tells thousands of names apart", none, () => {
  const count = 3_000;
  const { records } = snapshotOf({
    records: Array.from({ length: count }, (_, i) => `h${i}.example A 192.0.2.1 ${i + 1}`),
  });
  for (let i = 0; i < count; i++) {
    const { wire, name } = hashed(`h${i}.example`);
    const set = records.find(wire, name);
    assert.deepEqual([records.count(set), records.ttl(records.first(set))], [1, i + 1]);
    assert.equal(records.firstOfType(set, Qtype.AAAA), -1);
    const { wire: other, name: otherName } = hashed(`x${i}.example`);
    assert.equal(records.find(other, otherName), NO_RECORDS);
  }
});

Deno.test("memoryOf() names all that is shared, once", none, () => {
  const data = policyData({ lists: { ads: "||ads.example^" }, rules: ["||custom.example^"] }, SEED);
  const { rules, overlay } = data;
  const { custom, records, groups, clients, access } = overlay;
  const shared = [custom, records, groups, clients.networks, clients.ids, clients.details, access];
  assert.deepEqual(
    new Set(memoryOf(data)),
    new Set([
      rules,
      ...custom.levels,
      ...shared.map(({ memory }) => memory),
    ]),
  );
  assert.equal(memoryOf(data).length, 9);
  for (const { memory, parts } of shared) {
    for (const part of Object.values(parts)) assert.equal(part.buffer, memory);
  }
  assert.equal(memoryOf(policyData({}, SEED)).length, 7);
});
