// Goal: what a source has is taken whole, said of item by item, and once. Method: both products as
// recorded, read through a port without a network, planned on states, and carried out by the model.
import assert from "node:assert/strict";
import { parseConfig } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import { commandOf, ids, listSpec, recordSpec, ruleSpec, stateAfter } from "../model/fakes.ts";
import {
  apply,
  DEFAULT_GROUP_ID,
  DEFAULT_SETTINGS,
  type LiveState,
  MIGRATION_ITEMS_MAX,
} from "../model/mod.ts";
import {
  ADGUARD,
  ADGUARD_FRESH,
  adguardAnswer,
  fakeAsk,
  FakePihole,
  PASSWORD,
  PIHOLE,
  USER,
} from "./fakes.ts";
import { type Plan, planMigration, type Product, readSource, sourceBase, wishesOf } from "./mod.ts";
import { reverseZones } from "./pihole/file_part.ts";
import { windowsOf } from "./schedules.ts";
import type { Item, Place, Wishes } from "./wishes.ts";

const none = { permissions: "none" } as const;
const PLACE: Place = {
  services: new Set(["facebook", "roblox", "tiktok"]),
  timeZone: "Europe/Berlin",
};
const URLS: Readonly<Record<Product, string>> = {
  adguard: "http://192.0.2.1:3000/login.html",
  pihole: "http://192.0.2.1/admin/login",
};

type Answers = Readonly<Record<string, unknown>>;

async function wishesFrom(product: Product, answers: Answers): Promise<Wishes> {
  const { signal } = new AbortController();
  const hole = new FakePihole(answers);
  const ask = fakeAsk((asked) =>
    product === "adguard" ? adguardAnswer(asked, answers) : hole.answer(asked)
  );
  const request = { product, url: URLS[product], user: USER, password: PASSWORD };
  const source = await readSource({ ask, signal, farewell: () => signal }, request);
  assert.equal(hole.open.size, 0, "no session is left behind");
  return wishesOf(source, PLACE);
}

/** The state after a plan, which has to fit. */
function carriedOut({ change }: Plan, state: LiveState): LiveState {
  assert.ok(change !== null);
  const applied = apply(state, commandOf(change));
  assert.ok(
    applied.kind === "made",
    applied.settled.kind === "refused" ? applied.settled.message : "",
  );
  return applied.state;
}

function rows(items: readonly Item[], type: string): string[] {
  return items.filter((item) => item.type === type).map(({ outcome, name }) =>
    `${outcome}: ${name}`
  );
}

const SOURCES = [
  ["adguard", ADGUARD],
  ["adguard", ADGUARD_FRESH],
  ["pihole", PIHOLE],
] as const;

Deno.test("a plan fits whole, and once carried out leaves nothing to add", none, async () => {
  for (const [product, answers] of SOURCES) {
    const wishes = await wishesFrom(product, answers);
    const state = stateAfter();
    const plan = planMigration(product, wishes, state, PLACE);
    assert.deepEqual(planMigration(product, wishes, state, PLACE), plan, "the same again");
    if (plan.change === null) {
      assert.equal(answers, ADGUARD_FRESH);
      continue;
    }
    const again = planMigration(product, wishes, carriedOut(plan, state), PLACE);
    assert.equal(again.change, null);
    const left = again.items.filter(({ type, outcome }) =>
      type !== "file" && outcome !== "there_already" && outcome !== "not_possible"
    );
    assert.deepEqual(rows(left, "access"), left.map(({ name }) => `adapted: ${name}`));
    const was = plan.items.filter(({ outcome }) => outcome === "not_possible");
    assert.deepEqual(again.items.filter(({ outcome }) => outcome === "not_possible"), was);
  }
});

Deno.test("the part of svc.toml is one that is read", none, async () => {
  for (const [product, answers] of SOURCES) {
    const { fragment } = await wishesFrom(product, answers);
    const { problems } = parseConfig(fragment, { file: "svc.toml", directory: "/etc/svc" });
    assert.deepEqual(problems, [], fragment);
    // What stands there as a comment is good as well, once it is none.
    const open = fragment.replace(/^#(?=\[|\w+ =)/gm, "");
    const opened = parseConfig(open, { file: "svc.toml", directory: "/etc/svc" });
    assert.deepEqual(opened.problems, [], open);
  }
});

Deno.test("upstreams over QUIC come along", none, async () => {
  const { fragment } = await wishesFrom("adguard", ADGUARD);
  assert.match(fragment, /^address = "quic:\/\/dns\.adguard-dns\.com"$/m);
  // Others look its name up.
  assert.match(fragment, /^domains = .*"dns\.adguard-dns\.com"/m);
});

Deno.test("AdGuard Home: every kind of thing is told of", none, async (t) => {
  const wishes = await wishesFrom("adguard", ADGUARD);
  const { items, change } = planMigration("adguard", wishes, stateAfter(), PLACE);
  assert.ok(change !== null);
  const want: Readonly<Record<string, readonly string[]>> = {
    list: [
      "added: Ads (https://lists.example/ads.txt)",
      "added: Off (https://lists.example/off.txt)",
      "not_possible: Old (http://old.example/hosts)",
      "not_possible: Own (/opt/lists/own.txt)",
      "added: Good (https://lists.example/good.txt)",
    ],
    rule: [
      "added: ||ads.example^",
      "added: @@||good.example^$important",
      "not_possible: ||narrow.example^$client='Laptop'",
      "added: 192.168.1.7 printer.example",
      "adapted: blocked host ||secret.example^",
    ],
    group: ["added: Default", "adapted: Tablet", "added: Guests"],
    client: [
      "added: Laptop (192.168.1.20, 2001:db8::20, laptop)",
      "adapted: Tablet (aa:bb:cc:dd:ee:01, 192.168.1.21)",
      "added: Console (192.168.1.22, aa:bb:cc:dd:ee:77)",
      "added: Guests (192.168.9.0/24)",
      "added: Watch (aa:bb:cc:dd:ee:99)",
      "not_possible: Guests: upstreams of its own",
      "not_possible: Guests: tags user_regular",
    ],
    service: [
      "added: facebook for Default",
      "added: tiktok for Tablet",
      "added: roblox for Tablet",
      "not_possible: no_such_service for Tablet",
    ],
    schedule: ["added: Blocked services"],
    record: [
      "added: nas.home.arpa A 192.168.1.5",
      "added: nas.home.arpa AAAA 2001:db8::5",
      "added: *.dev.example A 192.168.1.6",
      "added: files.example CNAME nas.home.arpa",
      "not_possible: keep.dev.example → A",
      "not_possible: self.dev.example → self.dev.example",
    ],
    access: [
      "added: disallowed 192.168.1.66",
      "added: disallowed guest-phone",
      "adapted: everybody may ask",
    ],
    setting: [
      "added: block_response custom_ip",
      "added: blocking_ipv4 192.168.1.9",
      "added: block_ttl 60",
      "added: list_update_interval 43200",
      "not_possible: EDNS client subnet",
      "not_possible: DHCP server",
      "not_possible: safe browsing",
    ],
  };
  for (const [type, lines] of Object.entries(want)) {
    await t.step(type, () => assert.deepEqual(rows(items, type), lines));
  }
  await t.step("who is in no log and no statistics stays so", () => {
    const quiet = wishes.clients.filter(({ recorded }) => recorded.querylog === false);
    assert.deepEqual(quiet.map(({ name }) => name), ["Guests"]);
    const { collections } = carriedOut({ items, change }, stateAfter());
    const guests = [...collections.clients.values()].find(({ spec }) => spec.name === "Guests")!;
    assert.deepEqual([guests.spec.querylog, guests.spec.statistics], [false, false]);
  });
  await t.step("what is not possible says why", () => {
    for (const { outcome, detail } of items) {
      if (outcome !== "added" && outcome !== "there_already") assert.ok(detail !== null);
    }
  });
  await t.step("clients with the same settings share a group", () => {
    const [tablet, console_] = [1, 2].map((i) => change.add.clients[i].spec.group);
    assert.equal(tablet, console_);
    assert.notEqual(change.add.clients[0].spec.group, tablet);
    assert.equal(change.add.clients[0].spec.group, DEFAULT_GROUP_ID);
  });
});

Deno.test("Pi-hole: every kind of thing is told of", none, async (t) => {
  const wishes = await wishesFrom("pihole", PIHOLE);
  const { items, change } = planMigration("pihole", wishes, stateAfter(), PLACE);
  assert.ok(change !== null);
  const want: Readonly<Record<string, readonly string[]>> = {
    group: [
      "added: Default",
      "added: Kids",
      "added: School",
      "adapted: Kids + School",
      "added: Without groups",
      "not_possible: Old",
    ],
    client: [
      "added: Laptop (192.168.1.20)",
      "adapted: Tablet (aa:bb:cc:dd:ee:01, 192.168.1.21)",
      "added: Console (192.168.1.22)",
      "adapted: Guests (192.168.9.0/24)",
      "adapted: tv.lan (192.168.1.23)",
      "added: AA:BB:CC:DD:EE:99 (aa:bb:cc:dd:ee:99)",
      "not_possible: :eth1",
    ],
    record: [
      "added: nas A 192.168.1.5",
      "added: nas.lan A 192.168.1.5",
      "added: nas.home.arpa A 192.168.1.5",
      "added: nas.home.arpa AAAA 2001:db8::5",
      "added: *.dev.example CNAME nas.home.arpa",
      "added: www.dev.example CNAME nas.home.arpa",
      "not_possible: oops",
      "not_possible: alone",
    ],
    setting: [
      "there_already: block_response null_ip",
      "added: block_ttl 2",
      "not_possible: DHCP server",
    ],
  };
  for (const [type, lines] of Object.entries(want)) {
    await t.step(type, () => assert.deepEqual(rows(items, type), lines));
  }
  await t.step("domains become rules, for whom they are", () => {
    const made = change.add.rules.map(({ spec: { rule, enabled, comment, groups } }) =>
      [rule, enabled ? "" : "off", comment, groups.length].join(" ")
    );
    for (
      const line of [
        "|ads.example^  seen often 0",
        "@@|good.example^   2", // Kids, and Kids + School.
        "||track.example^   0",
        "/^ad[0-9]+\\./   0",
        "|later.example^ off  0",
      ]
    ) assert.ok(made.includes(line), `${line} in\n${made.join("\n")}`);
    const lost = rows(items, "rule").filter((line) => line.startsWith("not_possible"));
    assert.ok(lost.includes("not_possible: deny regex ^v6\\.;querytype=AAAA"));
    assert.ok(lost.includes("not_possible: deny exact nobody.example"));
  });
  await t.step("who is in two groups gets the lists of both", () => {
    const lists = new Map(change.add.lists.map(({ id, spec }) => [id, spec.name]));
    const both = change.add.groups.find(({ spec }) => spec.name === "Kids + School")!;
    assert.deepEqual(both.spec.lists.map(({ list }) => lists.get(list)), [
      "lists.example ads.txt",
      "Games",
    ]);
  });
});

Deno.test("nothing that is here is changed", none, async (t) => {
  const wishes = await wishesFrom("adguard", ADGUARD);
  const own = [
    { ...listSpec("mine"), url: "https://lists.example/ads.txt", enabled: false },
    { ...listSpec("other") },
  ];
  const state = stateAfter(
    { type: "create", collection: "lists", id: ids.list(1), spec: own[0] },
    { type: "create", collection: "rules", id: ids.rule(1), spec: ruleSpec("||ads.example^") },
    {
      type: "create",
      collection: "records",
      id: ids.record(1),
      spec: recordSpec("nas.home.arpa", "A", "192.168.7.7"),
    },
    {
      type: "create",
      collection: "records",
      id: ids.record(2),
      spec: recordSpec("*.dev.example", "CNAME", "web.example"),
    },
    {
      type: "create",
      collection: "clients",
      id: ids.client(1),
      spec: {
        name: "My laptop",
        addresses: ["192.168.1.20"],
        ids: [],
        group: DEFAULT_GROUP_ID,
        paused_until: null,
      },
    },
    {
      type: "settings",
      spec: { ...DEFAULT_SETTINGS, block_response: "refused", block_ttl: 60 },
      ifMatch: null,
    },
  );
  const plan = planMigration("adguard", wishes, state, PLACE);
  const after = carriedOut(plan, state);
  const said = (type: string, name: string) =>
    plan.items.find((item) => item.type === type && item.name.startsWith(name))!;
  await t.step("what was there is as it was", () => {
    for (const collection of ["lists", "rules", "records", "clients"] as const) {
      for (const [id, envelope] of state.collections[collection]) {
        assert.equal(after.collections[collection].get(id), envelope, id);
      }
    }
  });
  await t.step("each is told of", () => {
    assert.deepEqual(said("list", "Ads"), {
      type: "list",
      name: "Ads (https://lists.example/ads.txt)",
      outcome: "there_already",
      detail: "it is off here",
    });
    assert.equal(said("rule", "||ads.example^").outcome, "there_already");
    assert.equal(
      said("record", "nas.home.arpa A").detail,
      "192.168.7.7 is what it is here, and stays",
    );
    assert.equal(said("record", "nas.home.arpa AAAA").outcome, "added");
    assert.match(said("record", "*.dev.example").detail!, /^a CNAME stands alone/);
    assert.deepEqual(
      [said("client", "Laptop").outcome, said("client", "Laptop").detail],
      ["adapted", "without 192.168.1.20, which belong to others here"],
    );
    assert.equal(said("setting", "block_response").detail, "it is refused here, and stays");
    assert.equal(said("setting", "block_ttl").outcome, "there_already");
    assert.equal(said("setting", "blocking_ipv4").outcome, "added");
  });
});

Deno.test(
  "what is called alike here is joined, and what is taken gets another name",
  none,
  async () => {
    const wishes = await wishesFrom("pihole", PIHOLE);
    const state = stateAfter({
      type: "create",
      collection: "groups",
      id: ids.group(1),
      spec: {
        name: "KIDS",
        filtering: true,
        safe_search: true,
        lists: [],
        blocked_services: [{ service: "tiktok" }],
        paused_until: null,
      },
    });
    const plan = planMigration("pihole", wishes, state, PLACE);
    const after = carriedOut(plan, state);
    const { spec } = after.collections.groups.get(ids.group(1))!;
    assert.deepEqual([spec.name, spec.lists.length, spec.safe_search], ["KIDS", 1, true]);
    assert.ok(rows(plan.items, "group").includes("added: KIDS"));
    const tablet = [...after.collections.clients.values()].find(({ spec }) =>
      spec.name === "Tablet"
    )!;
    assert.equal(tablet.spec.group, ids.group(1));
  },
);

Deno.test(
  "a migration that is larger than one change takes what fits, and says the rest",
  none,
  async () => {
    const filtering = ADGUARD["filtering/status"] as object;
    const user_rules = Array.from({ length: 20_000 }, (_, n) => `||n${n}.example^`);
    const wishes = await wishesFrom("adguard", {
      ...ADGUARD,
      "filtering/status": { ...filtering, user_rules },
    });
    const state = stateAfter();
    const plan = planMigration("adguard", wishes, state, PLACE);
    const size = Object.values(plan.change!.add).reduce((sum, all) => sum + all.length, 0);
    assert.ok(size + plan.change!.join.length <= MIGRATION_ITEMS_MAX);
    assert.ok(plan.items.some(({ detail }) => detail === "one move takes 20000 things"));
    const again = planMigration("adguard", wishes, carriedOut(plan, state), PLACE);
    assert.ok(again.change !== null, "a second move takes the rest");
  },
);

Deno.test("what has no end is cut, and told: sets of groups, and names", none, async () => {
  const dates = { date_added: 0, date_modified: 0, comment: null, id: 1 };
  const groups = Array.from({ length: 1_000 }, (_, id) => ({
    ...{ ...dates, name: `G${id}`, enabled: true, id },
  }));
  const clients = Array.from({ length: 5_000 }, (_, n) => ({
    ...{
      ...dates,
      client: `10.0.${n >> 8}.${n & 255}`,
      name: "",
      groups: [n % 1_000, (n * 7) % 999],
    },
  }));
  const wishes = await wishesFrom("pihole", {
    ...PIHOLE,
    "groups": { groups },
    "clients": { clients },
  });
  const state = stateAfter();
  const plan = planMigration("pihole", wishes, state, PLACE);
  const after = carriedOut(plan, state);
  assert.ok(after.collections.groups.size <= 257);
  const cut = plan.items.filter(({ detail }) => detail?.startsWith("one move makes 256 groups"));
  assert.ok(cut.some(({ type }) => type === "group") && cut.some(({ type }) => type === "client"));
  assert.equal(planMigration("pihole", wishes, after, PLACE).change, null);
});

Deno.test("readSource() ends its session also where the source breaks off", none, async () => {
  const { signal } = new AbortController();
  const hole = new FakePihole({ ...PIHOLE, "clients": { clients: [{ client: 7 }] } });
  const ask = fakeAsk((asked) => hole.answer(asked));
  const read = (password: string | null) =>
    readSource(
      { ask, signal, farewell: () => signal },
      { product: "pihole", url: URLS.pihole, user: null, password },
    );
  await assert.rejects(read(PASSWORD), /api\/clients: clients\[0\]\.client: it is not a text/);
  assert.equal(hole.open.size, 0);
  await assert.rejects(read("wrong"), /password: Pi-hole at 192\.0\.2\.1: it takes no such/);
  await assert.rejects(read(null), /password: Pi-hole at 192\.0\.2\.1: it asks for a password/);
});

Deno.test("sourceBase() finds the API by what people copy from a browser", none, async (t) => {
  const found: readonly (readonly [Product, string, string])[] = [
    ["adguard", "http://192.0.2.1:3000", "http://192.0.2.1:3000/"],
    ["adguard", "https://dns.example/#filters", "https://dns.example/"],
    ["adguard", "http://192.0.2.1/login.html", "http://192.0.2.1/"],
    ["adguard", "https://proxy.example/agh/control/status", "https://proxy.example/agh/"],
    ["pihole", "http://pi.hole/admin/", "http://pi.hole/"],
    ["pihole", "http://pi.hole/admin/settings/api", "http://pi.hole/"],
    ["pihole", "https://proxy.example/two/admin", "https://proxy.example/two/"],
    ["pihole", "http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080/"],
  ];
  for (const [product, url, base] of found) {
    await t.step(url, () => assert.equal(sourceBase(product, url).href, base));
  }
  const refused: readonly (readonly [string, RegExp])[] = [
    ["192.168.1.2", /^url: it cannot be read as a URL/],
    ["file:///etc/passwd", /^url: it is no http or https URL/],
    ["ftp://192.0.2.1", /^url: it is no http or https URL/],
    ["http://ann:secret@192.0.2.1", /^url: it holds a user name or password/],
  ];
  for (const [url, message] of refused) {
    await t.step(url, () =>
      assert.throws(() => sourceBase("adguard", url), (error) => {
        assert.ok(error instanceof SvcError && error.code === "invalid");
        assert.match(error.message, message);
        assert.ok(!error.message.includes("secret"));
        return true;
      }));
  }
});

Deno.test("windowsOf() turns pauses into when something holds", none, async (t) => {
  const hour = 3_600_000;
  const show = (pauses: Parameters<typeof windowsOf>[0]) =>
    windowsOf(pauses)?.map(({ days, start, end }) => `${days.join("+")} ${start}-${end}`) ?? null;
  const table: readonly (readonly [string, Parameters<typeof windowsOf>[0], string[] | null])[] = [
    ["no pause", {}, null],
    ["an empty pause", { mon: { start: hour, end: hour } }, null],
    ["an evening", { mon: { start: 18 * hour, end: 20 * hour } }, [
      "mon 00:00-18:00",
      "mon 20:00-24:00",
      "tue+wed+thu+fri+sat+sun 00:00-24:00",
    ]],
    ["a morning from midnight", { sun: { start: 0, end: 8.5 * hour } }, [
      "mon+tue+wed+thu+fri+sat 00:00-24:00",
      "sun 08:30-24:00",
    ]],
    [
      "all days",
      Object.fromEntries(
        ["mon", "tue", "wed", "thu", "fri", "sat", "sun"].map((
          day,
        ) => [day, { start: 0, end: 24 * hour }]),
      ),
      [],
    ],
    ["times of no day", { mon: { start: -5 * hour, end: 99 * hour } }, [
      "tue+wed+thu+fri+sat+sun 00:00-24:00",
    ]],
  ];
  for (const [name, pauses, want] of table) {
    await t.step(name, () => assert.deepEqual(show(pauses), want));
  }
});

Deno.test("reverseZones() names the zones of a network", none, () => {
  const table: readonly (readonly [string, readonly string[] | null])[] = [
    ["192.168.0.0/16", ["168.192.in-addr.arpa"]],
    ["192.168.178.1/24", ["178.168.192.in-addr.arpa"]],
    ["10.0.0.0/8", ["10.in-addr.arpa"]],
    ["192.168.4.0/23", ["4.168.192.in-addr.arpa", "5.168.192.in-addr.arpa"]],
    ["fd00:1::/32", ["1.0.0.0.0.0.d.f.ip6.arpa"]],
    ["0.0.0.0/0", null],
    ["lan", null],
  ];
  for (const [network, want] of table) assert.deepEqual(reverseZones(network), want, network);
});
