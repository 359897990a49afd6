import assert from "node:assert/strict";
import { decodeSettings, decodeSpec } from "./decode.ts";
import { hex, ids } from "./fakes.ts";
import { PROBLEMS_MAX } from "./problems.ts";
import { type Collection, SPEC_BYTES_MAX } from "./resources.ts";
import { jsonBytes } from "./result.ts";
import { DEFAULT_SETTINGS, FRESH_NODE_ALLOWED } from "./settings.ts";

const none = { permissions: "none" } as const;

const LIST = { name: "Ads", url: "https://lists.example/ads.txt" };
const RECORD = { name: "web.example", type: "A", value: "192.0.2.1" };
const GROUP = { name: "Kids" };
const CLIENT = { name: "TV", ids: ["tv"] };
const SCHEDULE = {
  name: "Work",
  time_zone: "Europe/Berlin",
  windows: [{ days: ["mon", "sat", "sun"], start: "08:00", end: "24:00" }],
};

const REFUSED: readonly (readonly [Collection, json: unknown, path: string, message: RegExp])[] = [
  ["lists", null, "", /is not an object/],
  ["lists", [], "", /is not an object/],
  ["lists", {}, "name", /is missing/],
  ["lists", { ...LIST, colour: "red" }, "colour", /no such field/],
  ["lists", { ...LIST, path: "/a" }, "url", /exactly one of url and path/],
  ["lists", { name: "Ads" }, "url", /exactly one of url and path/],
  ["lists", { ...LIST, url: "lists.example" }, "url", /cannot be read/],
  ["lists", { ...LIST, url: "http://lists.example/" }, "url", /no https URL/],
  ["lists", { ...LIST, url: "file:///etc/passwd" }, "url", /no https URL/],
  ["lists", { ...LIST, url: "https://ann:pw@lists.example/" }, "url", /user name or password/],
  ["lists", { name: "Ads", path: "a\u0000b" }, "path", /holds a control/],
  ["lists", { ...LIST, enabled: "yes" }, "enabled", /not true or false/],
  ["lists", { ...LIST, name: "" }, "name", /./],
  ["lists", { ...LIST, name: "x".repeat(129) }, "name", /128/],
  ["rules", { rule: "! a comment" }, "rule", /from column 1: it is a comment/],
  ["rules", { rule: "   " }, "rule", /blank/],
  ["rules", { rule: "||a.example^\n||b.example^" }, "rule", /more than one line/],
  ["rules", { rule: "||a.example^$script" }, "rule", /from column 13: only the modifiers/],
  ["rules", { rule: "0.0.0.0 a.example localhost" }, "rule", /left out: localhost and its kind/],
  ["rules", { rule: `||${"é".repeat(2_100)}.example^` }, "rule", /longer than 4096 bytes/],
  ["lists", { ...LIST, name: "  " }, "name", /blank/],
  ["lists", { ...LIST, name: "a\u202Eb" }, "name", /invisible/],
  ["lists", { ...LIST, url: "https://lists.example/\na" }, "url", /control/],
  ["lists", { name: "Ads", path: "a\u2066b" }, "path", /direction/],
  ["groups", { name: "Ki\u200Bds" }, "name", /invisible/],
  ["groups", { name: "Ki\u3164ds" }, "name", /invisible/],
  ["clients", { ...CLIENT, name: "TV\u0007" }, "name", /control/],
  ["schedules", { ...SCHEDULE, name: "\ud800" }, "name", /invisible/],
  ["records", { ...RECORD, name: "svc.test" }, "name", /service's own/],
  ["records", { ...RECORD, name: "*.svc.test" }, "name", /service's own/],
  ["records", { ...RECORD, name: "A.Leak.SVC.Test." }, "name", /service's own/],
  ["records", { ...RECORD, name: "*.a.svc.test" }, "name", /service's own/],
  ["records", { ...RECORD, name: "ｓvc.test" }, "name", /service's own/],
  ["records", { ...RECORD, name: "a..example" }, "name", /no name/],
  ["records", { ...RECORD, name: "a.*.example" }, "name", /no name/],
  ["records", { ...RECORD, name: "*" }, "name", /no name/],
  ["records", { ...RECORD, value: "2001:db8::1" }, "value", /no IPv4 address/],
  ["records", { ...RECORD, value: "192.0.2.01" }, "value", /no IPv4 address/],
  ["records", { ...RECORD, type: "AAAA" }, "value", /no IPv6 address/],
  ["records", { ...RECORD, type: "CNAME", value: "*.a.example" }, "value", /is no name/],
  ["records", { ...RECORD, type: "CNAME", value: "WEB.example." }, "value", /own name/],
  ["records", { ...RECORD, type: "NS" }, "type", /./],
  ["records", { ...RECORD, type: "MX" }, "value", /no mail server: write .* 10 mail\.example/],
  ["records", { ...RECORD, type: "SRV", value: "1 2 host" }, "value", /no server: write/],
  ["records", { ...RECORD, type: "TXT", value: '"a' }, "value", /no text/],
  ["records", { ...RECORD, type: "PTR", value: "a..b" }, "value", /no name/],
  ["records", { ...RECORD, type: "HTTPS", value: "1" }, "value", /no service/],
  ["records", { ...RECORD, type: "CAA", value: "0 issue" }, "value", /no authority/],
  ["records", { ...RECORD, ttl: 1.5 }, "ttl", /./],
  ["records", { ...RECORD, ttl: -1 }, "ttl", /./],
  ["groups", { ...GROUP, lists: [{ list: "li_9" }] }, "lists[0].list", /no ID of li_/],
  ["groups", { ...GROUP, lists: [{}] }, "lists[0].list", /is missing/],
  ["groups", { ...GROUP, lists: [{ list: ids.list(1), x: 1 }] }, "lists[0].x", /no such field/],
  [
    "groups",
    { ...GROUP, blocked_services: [{ service: "Tube!" }] },
    "blocked_services[0].service",
    /./,
  ],
  ["clients", { name: "TV" }, "addresses", /at least one address or ID/],
  ["clients", { ...CLIENT, addresses: ["192.0.2.1/24"] }, "addresses[0]", /host bits/],
  ["clients", { ...CLIENT, addresses: ["tv"] }, "addresses[0]", /no address or network/],
  ["clients", { ...CLIENT, addresses: ["::1", "0::1"] }, "addresses[1]", /given twice/],
  [
    "clients",
    { ...CLIENT, addresses: ["10.0.0.1", "::ffff:10.0.0.1/128"] },
    "addresses[1]",
    /given twice/,
  ],
  ["clients", { ...CLIENT, ids: ["tv", "pc", "tv"] }, "ids[2]", /given twice/],
  ["clients", { ...CLIENT, ids: ["TV"] }, "ids[0]", /lower-case/],
  ["clients", { ...CLIENT, ids: Array.from({ length: 17 }, (_, n) => `c${n}`) }, "ids", /16/],
  ["schedules", { ...SCHEDULE, time_zone: "Mars/Base" }, "time_zone", /no IANA time zone/],
  [
    "schedules",
    { ...SCHEDULE, windows: [{ days: ["mon"], start: "24:00", end: "24:00" }] },
    "windows[0].start",
    /HH:MM/,
  ],
  [
    "schedules",
    { ...SCHEDULE, windows: [{ days: ["mon"], start: "08:00", end: "08:00" }] },
    "windows[0].end",
    /never holds/,
  ],
  [
    "schedules",
    { ...SCHEDULE, windows: [{ days: ["monday"], start: "08:00", end: "09:00" }] },
    "windows[0].days[0]",
    /./,
  ],
  ["schedules", { ...SCHEDULE, windows: [] }, "windows", /./],
];

Deno.test("decodeSpec() names the field it refuses", none, async (t) => {
  for (const [collection, json, path, message] of REFUSED) {
    await t.step(`${collection} ${JSON.stringify(json).slice(0, 80)}`, () => {
      const decoded = decodeSpec(collection, json);
      assert.ok(!decoded.ok);
      const [problem] = decoded.problems;
      assert.equal(problem.path, path);
      assert.match(problem.message, message);
    });
  }
});

const SEVERAL: readonly (readonly [Collection, json: unknown, paths: readonly string[]])[] = [
  ["rules", { rule: "! no rule", comment: 1, colour: "red" }, ["comment", "colour", "rule"]],
  ["records", { name: "svc.test", type: "A", value: "::1", ttl: -1 }, ["ttl", "name", "value"]],
  ["records", {}, ["name", "type", "value"]],
  ["lists", { name: "", x: 1, y: 2 }, ["name", "x", "y", "url"]],
  ["lists", { name: "\u0000", url: "ftp://x/" }, ["name", "url"]],
  ["groups", { name: 1, lists: [{ list: 1, x: 1 }, {}] }, [
    "name",
    "lists[0].list",
    "lists[0].x",
    "lists[1].list",
  ]],
  ["clients", { name: "tv", addresses: [], group: 3 }, ["group", "addresses"]],
  ["clients", { name: "tv", ids: ["a", "a", "A"] }, ["ids[2]"]],
  ["schedules", { time_zone: "Mars", windows: [{ days: [], start: "9", end: "25:00" }] }, [
    "name",
    "time_zone",
    "windows[0].days",
    "windows[0].start",
    "windows[0].end",
  ]],
];

Deno.test("decodeSpec() tells all that is wrong at once", none, async (t) => {
  for (const [collection, json, paths] of SEVERAL) {
    await t.step(`${collection} ${JSON.stringify(json)}`, () => {
      const decoded = decodeSpec(collection, json);
      assert.ok(!decoded.ok);
      assert.deepEqual(decoded.problems.map(({ path }) => path), paths);
    });
  }
});

Deno.test("decodeSpec() bounds what it tells, and repeats nothing that hides", none, () => {
  const keys = Array.from({ length: 1_000 }, (_, i) => [`k${i}`, 1]);
  const many = decodeSpec("rules", Object.fromEntries(keys));
  assert.ok(!many.ok);
  assert.equal(many.problems.length, PROBLEMS_MAX);
  const odd = decodeSpec("rules", { rule: "||a.example^", ["\u202Eevil" + "x".repeat(9_999)]: 1 });
  assert.ok(!odd.ok);
  assert.equal(odd.problems[0].path, `\ufffdevil${"x".repeat(59)}…`);
});

const common = { enabled: true, comment: "", managed_by: "api" };
const UNLIMITED = { expires_at: null, groups: [], clients: [] };
const GROUP_ID = "gr_00000000000000aa";
const TAKEN: readonly (readonly [Collection, json: unknown, spec: unknown])[] = [
  ["lists", LIST, { ...LIST, ...common }],
  ["lists", { name: "a", path: "ads.txt" }, { name: "a", path: "ads.txt", ...common }],
  ["lists", { ...LIST, url: "http://127.0.0.1:8/a" }, {
    ...LIST,
    url: "http://127.0.0.1:8/a",
    ...common,
  }],
  ["lists", { ...LIST, managed_by: "terraform" }, { ...LIST, ...common }],
  ["rules", { rule: "  ||Ads.example^ " }, { rule: "||Ads.example^", ...common, ...UNLIMITED }],
  ["rules", { rule: "@@||a.example^$important", enabled: false, comment: "why" }, {
    rule: "@@||a.example^$important",
    enabled: false,
    comment: "why",
    managed_by: "api",
    ...UNLIMITED,
  }],
  ["rules", { rule: "||a.example^", expires_at: "2026-01-02T04:04:05+01:00", groups: [GROUP_ID] }, {
    rule: "||a.example^",
    ...common,
    ...UNLIMITED,
    expires_at: "2026-01-02T03:04:05.000Z",
    groups: [GROUP_ID],
  }],
  ["records", RECORD, { ...RECORD, ttl: 300, ...common }],
  ["records", { ...RECORD, name: "*.WEB.example." }, {
    ...RECORD,
    name: "*.web.example",
    ttl: 300,
    ...common,
  }],
  ["records", { name: "Bücher.example", type: "AAAA", value: "2001:DB8:0::1", ttl: 0 }, {
    name: "xn--bcher-kva.example",
    type: "AAAA",
    value: "2001:db8::1",
    ttl: 0,
    ...common,
  }],
  ["records", { ...RECORD, type: "CNAME", value: "Other.Example." }, {
    ...RECORD,
    type: "CNAME",
    value: "other.example",
    ttl: 300,
    ...common,
  }],
  [
    "records",
    { ...RECORD, name: "_sip._TCP.example", type: "SRV", value: "1 2 5060 Sip.example." },
    {
      ...RECORD,
      name: "_sip._tcp.example",
      type: "SRV",
      value: "1 2 5060 Sip.example",
      ttl: 300,
      ...common,
    },
  ],
  ["records", { ...RECORD, type: "TXT", value: "v=spf1 -all" }, {
    ...RECORD,
    type: "TXT",
    value: '"v=spf1 -all"',
    ttl: 300,
    ...common,
  }],
  ["records", { ...RECORD, name: "mysvc.test" }, {
    ...RECORD,
    name: "mysvc.test",
    ttl: 300,
    ...common,
  }],
  ["groups", { name: "👨‍👩‍👧 ❤️ Bücher" }, {
    name: "👨‍👩‍👧 ❤️ Bücher",
    filtering: true,
    safe_search: false,
    lists: [],
    blocked_services: [],
    paused_until: null,
  }],
  ["groups", GROUP, {
    name: "Kids",
    filtering: true,
    safe_search: false,
    lists: [],
    blocked_services: [],
    paused_until: null,
  }],
  ["clients", { name: "TV", addresses: ["10.0.0.1/32", "::ffff:10.1.0.0/112", "2001:DB8::/32"] }, {
    name: "TV",
    addresses: ["10.0.0.1", "10.1.0.0/16", "2001:db8::/32"],
    ids: [],
    group: "gr_0000000000000000",
    paused_until: null,
  }],
  ["schedules", SCHEDULE, SCHEDULE],
];

Deno.test("decodeSpec() fills in defaults and gives texts their one form", none, async (t) => {
  for (const [collection, json, spec] of TAKEN) {
    await t.step(`${collection} ${JSON.stringify(json)}`, () => {
      assert.deepEqual(decodeSpec(collection, json), { ok: true, spec });
      assert.deepEqual(decodeSpec(collection, spec), { ok: true, spec }, "and takes its own");
    });
  }
});

Deno.test("decodeSpec() refuses what the store could not keep", none, () => {
  const service = (n: number) => ({ service: "s".repeat(60) + hex(n).slice(-4) });
  const group = (services: number) => ({
    name: "g",
    blocked_services: Array.from({ length: services }, (_, n) => service(n)),
  });
  assert.ok(decodeSpec("groups", group(200)).ok);
  const decoded = decodeSpec("groups", { ...group(256), lists: largeLists() });
  assert.ok(!decoded.ok);
  const [problem] = decoded.problems;
  assert.equal(problem.path, "");
  assert.match(problem.message, new RegExp(`larger than ${SPEC_BYTES_MAX} bytes`));
});

function largeLists() {
  return Array.from({ length: 256 }, (_, n) => ({ list: ids.list(n), schedule: ids.schedule(n) }));
}

Deno.test("decodeSettings() reads what PUT sends", none, () => {
  const decoded = decodeSettings({ access: { allowed: ["::ffff:10.0.0.0/104", "tv"] } });
  assert.ok(decoded.ok);
  assert.deepEqual(decoded.spec.access, { allowed: ["10.0.0.0/8", "tv"], disallowed: [] });
  assert.ok(jsonBytes(decoded.spec) < 1_000);
  const partial: readonly (readonly [unknown, unknown])[] = [
    [{}, DEFAULT_SETTINGS.access],
    [{ access: {} }, DEFAULT_SETTINGS.access],
    [{ access: { disallowed: ["tv"] } }, { allowed: FRESH_NODE_ALLOWED, disallowed: ["tv"] }],
    [{ access: { allowed: [] } }, { allowed: [], disallowed: [] }],
  ];
  for (const [json, access] of partial) {
    const read = decodeSettings(json);
    assert.ok(read.ok);
    assert.deepEqual(read.spec.access, access);
    assert.deepEqual({ ...read.spec, access: null }, { ...DEFAULT_SETTINGS, access: null });
  }
  const rows: readonly (readonly [unknown, string, RegExp])[] = [
    [{ access: { allowed: ["10.0.0.1/8"] } }, "access.allowed[0]", /host bits/],
    [{ access: { disallowed: ["TV"] } }, "access.disallowed[0]", /no address or network/],
    [{ block_ttl: -1 }, "block_ttl", /./],
    [{ blocking_ipv4: "::1" }, "blocking_ipv4", /no IPv4 address/],
    [{ block_response: "drop" }, "block_response", /./],
    [{ speed: 9 }, "speed", /no such field/],
  ];
  for (const [json, path, message] of rows) {
    const refused = decodeSettings(json);
    assert.ok(!refused.ok);
    const [problem] = refused.problems;
    assert.equal(problem.path, path);
    assert.match(problem.message, message);
  }
});
