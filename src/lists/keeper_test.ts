import assert from "node:assert/strict";
import { DAY_MS, KeeperBench as Bench, MemoryDisk } from "./fakes.ts";
import type { ListSource } from "./source.ts";

const ads: ListSource = { id: "li_a", name: "Ads", url: "https://lists.example/ads.txt" };
const more: ListSource = { id: "li_b", name: "More", url: "https://lists.example/more.txt" };
const own: ListSource = { id: "li_c", name: "Own", path: "own.txt" };

const lines = (count: number) => "||ads.example^\n".repeat(count);

Deno.test("ListKeeper fetches, keeps, and loads after a restart", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  assert.deepEqual(await bench.load([ads, more]), []);
  assert.equal(bench.state(ads), "pending");
  assert.deepEqual(await bench.refresh([ads, more]), ["li_a updated", "li_b updated"]);
  const want = ["li_a ||ads.txt.example^", "li_b ||more.txt.example^"];
  assert.deepEqual(await bench.load([ads, more]), want);
  assert.deepEqual(bench.disk.paths(), ["/kept/index.json", "/kept/li_a.txt", "/kept/li_b.txt"]);

  bench.clock.timeMs += 1000;
  await bench.reopen();
  bench.network.asked.length = 0;
  assert.deepEqual(await bench.load([ads, more]), want);
  assert.deepEqual(bench.keeper.status("li_a"), {
    state: "ok",
    message: null,
    rules: 0,
    unsupported: 0,
    refreshed_at: "2026-01-01T00:00:00.000Z",
    downloading: null,
  });
  assert.deepEqual(await bench.refresh([ads, more]), [], "nothing is due after a restart");
  assert.deepEqual(bench.network.asked, []);
});

Deno.test("ListKeeper.refresh() asks for what is due, or for all by force", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  await bench.refresh([ads]);
  const { timeMs } = bench.clock;
  assert.equal(bench.keeper.nextDueAtMs([ads], DAY_MS), timeMs + DAY_MS);
  assert.equal(bench.keeper.nextDueAtMs([ads, more], DAY_MS), timeMs);
  assert.equal(bench.keeper.nextDueAtMs([], DAY_MS), Infinity);
  assert.deepEqual(await bench.refresh([ads, more]), ["li_b updated"]);
  assert.deepEqual(await bench.refresh([ads], { force: true }), ["li_a unchanged"]);
  bench.clock.timeMs += DAY_MS;
  bench.network.answer = () => ({ body: "||new.example^" });
  assert.deepEqual(await bench.refresh([ads, more]), ["li_a updated", "li_b updated"]);
  assert.deepEqual(await bench.load([ads]), ["li_a ||new.example^"]);
});

Deno.test("ListKeeper.refresh() sends what the server gave to tell a new text", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  const headers = { etag: '"1"', "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT" };
  bench.network.answer = () => ({ body: "||ads.example^", headers });
  await bench.refresh([ads]);
  await bench.reopen();
  bench.network.answer = () => ({ status: 304 });
  bench.clock.timeMs += DAY_MS;
  assert.deepEqual(await bench.refresh([ads]), ["li_a unchanged"]);
  const [first, second] = bench.network.asked.map(({ headers }) => headers);
  assert.equal(first["if-none-match"], undefined);
  assert.equal(second["if-none-match"], '"1"');
  assert.equal(second["if-modified-since"], headers["last-modified"]);
  assert.equal(bench.keeper.status("li_a").refreshed_at, "2026-01-02T00:00:00.000Z");
  await bench.reopen();
  assert.deepEqual(await bench.refresh([ads]), [], "the confirmation is kept as well");

  // A text that is not whole is no text to keep: it is asked for without a condition.
  bench.disk.put("/kept/li_a.txt", "||ads.exa");
  bench.network.answer = () => ({ body: "||ads.example^", headers });
  assert.deepEqual(await bench.refresh([ads], { force: true }), ["li_a updated"]);
  assert.equal(bench.network.asked[2].headers["if-none-match"], undefined);
});

const REFUSED = [
  ["a page", { headers: { "content-type": "text/html" }, body: "x" }, "it is an HTML page"],
  ["a page in disguise", { body: "<!doctype html>" }, "it is an HTML page"],
  ["binary", { body: "a\0b" }, "it is binary"],
  ["nothing", { body: "" }, "no rules in it: it is empty"],
  ["comments", { body: "# nothing here" }, "no rules in it"],
  ["an error", { body: "404: Not Found" }, "no rules in it that can be read, but 1 other lines"],
  ["a word", { body: "error" }, "no rules in it that can be read, but 1 other lines"],
  ["forms that are not read", { body: "a.example##.ad" }, "no rules in it that can be read"],
  ["404", { status: 404, body: "||no.example^" }, "the server answered 404"],
  ["500", { status: 500 }, "the server answered 500"],
  ["a part of it", { status: 206, body: "||no.example^" }, "the server answered 206"],
  ["304 unasked", { status: 304 }, "the server answered 304"],
  ["a redirect to nowhere", { status: 302 }, "a 302 without a place to go to"],
  [
    "a redirect to http",
    { status: 301, headers: { location: "http://lists.example/" } },
    "no https U",
  ],
  ["a redirect to http on loopback", {
    status: 301,
    headers: { location: "http://127.0.0.1:8053/api/v1/status" },
  }, "a redirect to http on 127.0.0.1:8053 is refused"],
  [
    "a redirect to a file",
    { status: 301, headers: { location: "file:///etc/passwd" } },
    "no https U",
  ],
  ["a redirect to itself", { status: 302, headers: { location: "/ads.txt" } }, "more than 5 redi"],
  ["an unknown encoding", { headers: { "content-encoding": "zstd" }, body: "x" }, '"zstd" is unk'],
  ["too short a body", { headers: { "content-length": "9" }, body: "||no" }, "cut off: 4 of 9 by"],
  ["too long a length", { headers: { "content-length": "268435457" } }, "it is larger than"],
] as const;

Deno.test("ListKeeper keeps the last good text whatever comes", {
  permissions: "none",
}, async (t) => {
  for (const [name, answer, want] of REFUSED) {
    await t.step(name, async () => {
      const bench = await Bench.open();
      const first = bench.network.answer;
      bench.network.answer = () => answer;
      assert.deepEqual(await bench.refresh([ads]), ["li_a failed"]);
      assert.match(bench.state(ads), /^failed: lists\.example: /);
      assert.ok(bench.state(ads).includes(want), bench.state(ads));
      assert.deepEqual(bench.disk.paths(), [], "nothing is left of it");

      bench.network.answer = first;
      assert.deepEqual(await bench.refresh([ads], { force: true }), ["li_a updated"]);
      assert.equal(bench.state(ads), "ok");
      bench.network.answer = () => answer;
      assert.deepEqual(await bench.refresh([ads], { force: true }), ["li_a failed"]);
      assert.match(bench.state(ads), /; the text of 2026-01-01T00:00:00\.000Z stays in use$/);
      assert.deepEqual(await bench.load([ads]), ["li_a ||ads.txt.example^"]);
    });
  }
});

Deno.test("ListKeeper follows redirects and keeps the URL that was asked for", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  const local = { ...more, url: "http://localhost:8080/more.txt" };
  bench.network.answer = (url) =>
    url.pathname.endsWith(".txt")
      ? { status: 307, headers: { location: "//127.0.0.1/next" } }
      : { body: "||next.example^", headers: { etag: '"n"' } };
  assert.deepEqual(await bench.refresh([ads, local]), ["li_a updated", "li_b updated"]);
  const urls = bench.network.asked.map(({ url }) => url);
  assert.deepEqual(urls, [ads.url, local.url, "https://127.0.0.1/next", "http://127.0.0.1/next"]);
  await bench.reopen();
  assert.deepEqual(await bench.refresh([ads, local]), []);
});

Deno.test("ListKeeper believes a text that shrank once it has lasted a day", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  const send = (count: number) => bench.network.answer = () => ({ body: lines(count) });
  const force = { force: true };
  send(2000);
  await bench.refresh([ads]);
  send(200);
  assert.deepEqual(await bench.refresh([ads], force), ["li_a updated"], "a tenth is no mistake");
  send(1);
  assert.deepEqual(await bench.refresh([ads], force), ["li_a updated"], "it was small before");

  send(1001);
  await bench.refresh([ads], force);
  send(99);
  assert.deepEqual(await bench.refresh([ads], force), ["li_a failed"]);
  assert.match(bench.state(ads), /it has shrunk from 15015 to 1485 bytes/);
  bench.clock.timeMs += DAY_MS - 1;
  await bench.reopen();
  assert.deepEqual(await bench.refresh([ads], force), ["li_a failed"]);
  send(1002);
  assert.deepEqual(await bench.refresh([ads], force), ["li_a updated"]);
  send(99);
  bench.clock.timeMs += DAY_MS;
  assert.deepEqual(await bench.refresh([ads], force), ["li_a failed"], "a new day starts");
  bench.clock.timeMs += DAY_MS;
  await bench.reopen();
  assert.deepEqual(await bench.refresh([ads], force), ["li_a updated"]);
  assert.equal((await bench.load([ads]))[0].split("\n").length, 99);
});

Deno.test("ListKeeper keeps the old text until that of a new URL is good", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  bench.network.answer = () => ({ body: lines(5000), headers: { etag: '"1"' } });
  await bench.refresh([ads]);
  const moved = { ...ads, url: "https://other.example/ads.txt" };
  await bench.reopen();
  assert.equal((await bench.load([moved])).length, 1);
  assert.match(bench.state(moved), /^pending: an older text is in use/);
  bench.network.answer = () => ({ status: 404 });
  assert.deepEqual(await bench.refresh([moved]), ["li_a failed"]);
  assert.equal((await bench.load([moved])).length, 1);
  // Another list: neither the old validators nor the old size mean anything.
  bench.network.answer = () => ({ body: "||moved.example^" });
  assert.deepEqual(await bench.refresh([moved], { force: true }), ["li_a updated"]);
  assert.equal(bench.network.asked.at(-1)?.headers["if-none-match"], undefined);
  assert.deepEqual(await bench.load([moved]), ["li_a ||moved.example^"]);
});

Deno.test("ListKeeper.load() leaves a damaged text out, and it is fetched anew", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  await bench.refresh([ads, more]);
  bench.disk.put("/kept/li_a.txt", "||ads.txt.exampl");
  await bench.reopen();
  assert.deepEqual(await bench.load([ads, more]), ["li_b ||more.txt.example^"]);
  assert.match(bench.state(ads), /^pending: the kept text is damaged/);
  assert.deepEqual(await bench.refresh([ads, more]), ["li_a updated"]);
  assert.equal((await bench.load([ads, more])).length, 2);
});

Deno.test("ListKeeper.open() lives with a damaged index", { permissions: "none" }, async (t) => {
  for (const index of ["", "{", '{"version":2}', '{"version":1,"lists":{"li_a":[{}]}}', "\xff"]) {
    await t.step(JSON.stringify(index), async () => {
      const bench = await Bench.open();
      await bench.refresh([ads]);
      bench.disk.put("/kept/index.json", index);
      bench.disk.put("/kept/li_b.txt", "<!doctype html>");
      await bench.reopen();
      assert.deepEqual(await bench.load([ads, more]), ["li_a ||ads.txt.example^"]);
      assert.deepEqual(await bench.refresh([ads, more]), ["li_a updated", "li_b updated"]);
    });
  }
});

Deno.test("ListKeeper.open() clears what an interrupted write left", {
  permissions: "none",
}, async () => {
  const disk = new MemoryDisk();
  disk.put("/kept/li_a.txt.part", "||ads");
  disk.put("/kept/index.json.part", "{");
  const bench = await Bench.open(disk);
  assert.deepEqual(bench.disk.paths(), []);
});

Deno.test("ListKeeper.load() removes the lists that are no longer there", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  const third = { ...ads, id: "li_d" };
  await bench.refresh([ads, more, third]);
  await bench.load([ads], ["li_d"]);
  const want = ["/kept/index.json", "/kept/li_a.txt", "/kept/li_d.txt"];
  assert.deepEqual(bench.disk.paths(), want);
  assert.equal(bench.keeper.status("li_b").refreshed_at, null);
  // A load that is given up has not seen to the end what there is.
  for await (const _ of bench.keeper.load([third])) break;
  assert.deepEqual(bench.disk.paths(), want);
});

Deno.test("ListKeeper reads lists by path from their directory", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  assert.deepEqual(await bench.load([own]), []);
  assert.match(bench.state(own), /^skipped: own\.txt: the directory of local lists does not exist/);
  assert.equal(bench.keeper.status("li_c").refreshed_at, null);

  bench.disk.put("/local/own.txt", "||own.example^");
  const absolute = { ...own, id: "li_d", path: "/local/own.txt" };
  assert.deepEqual(await bench.load([own, absolute]), [
    "li_c ||own.example^",
    "li_d ||own.example^",
  ]);
  assert.equal(bench.state(own), "ok");
  assert.deepEqual(await bench.refresh([own], { force: true }), ["li_c unchanged"]);
  bench.disk.put("/local/own.txt", "||new.example^");
  assert.deepEqual(await bench.refresh([own]), [], "not due yet");
  assert.deepEqual(await bench.refresh([own], { force: true }), ["li_c updated"]);
  for (const path of ["/etc/passwd", "../kept/li_a.txt", "/local/../etc/passwd", "/local", "."]) {
    const elsewhere = { ...own, path };
    assert.deepEqual(await bench.refresh([elsewhere], { force: true }), ["li_c skipped"], path);
    assert.match(bench.state(elsewhere), /put the file in \/local/);
  }
  const missing = { ...own, path: "missing.txt" };
  assert.deepEqual(await bench.refresh([missing]), ["li_c failed"]);
  assert.match(bench.state(missing), /^failed: missing\.txt: no such file/);
});

Deno.test("ListKeeper skips a URL that it must not fetch", { permissions: "none" }, async () => {
  const bench = await Bench.open();
  const plain = { ...ads, url: "http://lists.example/ads.txt" };
  assert.deepEqual(await bench.refresh([plain]), ["li_a skipped"]);
  assert.match(bench.state(plain), /^skipped: the URL is refused: it is no https URL/);
  assert.deepEqual(bench.network.asked, []);
});

Deno.test("ListKeeper.status() shows what the compiler counted", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  await bench.refresh([ads]);
  bench.keeper.setCounts("li_a", { rules: 7, unsupported: 2 });
  const { rules, unsupported } = bench.keeper.status("li_a");
  assert.deepEqual([rules, unsupported], [7, 2]);
});

Deno.test("ListKeeper keeps a list by path from a file without a rule, and so over a restart", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  bench.disk.put("/local/own.txt", "own.example");
  assert.deepEqual(await bench.load([own]), ["li_c own.example"]);
  const stays = "; the text of 2026-01-01T00:00:00.000Z stays in use";
  for (
    const [content, why] of [
      ["", "no rules in it: it is empty"],
      ["# later\n", "no rules in it"],
      ["own.example##.x", "no rules in it that can be read, but 1 other lines"],
      ["\0\0", "it is binary, not text"],
    ]
  ) {
    bench.disk.put("/local/own.txt", content);
    assert.deepEqual(await bench.refresh([own], { force: true }), ["li_c failed"], why);
    assert.equal(bench.state(own), `failed: own.txt: ${why}${stays}`);
    for (let i = 0; i < 2; i++) {
      assert.equal((await bench.keeper.digests([own])).length, 1);
      assert.deepEqual(await bench.load([own]), ["li_c own.example"]);
      assert.deepEqual([...bench.keeper.problems([own]).values()], []);
      await bench.reopen();
    }
  }
  bench.disk.put("/local/own.txt", "wpad");
  assert.deepEqual(await bench.refresh([own], { force: true }), ["li_c updated"]);
  assert.deepEqual(await bench.load([own]), ["li_c wpad"], "one's own words are names");
  assert.equal(bench.state(own), "ok");
  await bench.disk.remove("/local/own.txt");
  bench.disk.put("/local/other.txt", "");
  assert.deepEqual(await bench.load([own]), ["li_c wpad"]);
  assert.match(bench.state(own), /^failed: own\.txt: no such file.*stays in use$/);
  // Where it must not be read from, no copy is read instead.
  assert.deepEqual(await bench.load([{ ...own, path: "/etc/passwd" }]), []);
});

Deno.test("ListKeeper has no text without a rule confirmed that an earlier release kept", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  bench.network.answer = (_, headers) =>
    headers["if-none-match"] === '"1"'
      ? { status: 304 }
      : { body: "404: Not Found", headers: { etag: '"1"' } };
  const text = "404: Not Found";
  const digest = new Uint8Array(
    await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)),
  );
  const copy = {
    url: ads.url,
    sha256: digest.toHex(),
    sizeBytes: text.length,
    fetchedAtMs: bench.clock.timeMs,
    etag: '"1"',
  };
  bench.disk.put("/kept/li_a.txt", text);
  bench.disk.put("/kept/index.json", JSON.stringify({ version: 1, lists: { li_a: [copy] } }));
  await bench.reopen();
  await bench.load([ads]);
  assert.deepEqual(await bench.refresh([ads], { force: true }), ["li_a failed"]);
  assert.match(bench.state(ads), /^failed: lists\.example: no rules in it/);
});

Deno.test("ListKeeper keeps a whole text only if its source's check takes it", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  const source: ListSource = {
    id: "services",
    name: "Services",
    url: "https://lists.example/services.json",
    check: (text) => {
      if (text !== '{"ä":1}') throw new Error(`not ${text}`);
    },
  };
  const bytes = new TextEncoder().encode('{"ä":1}');
  async function* split() {
    yield bytes.slice(0, 3); // In the middle of a character.
    yield bytes.slice(3);
  }
  bench.network.answer = () => ({ body: split() });
  assert.deepEqual(await bench.refresh([source]), ["services updated"]);
  bench.network.answer = () => ({ body: "{}" });
  assert.deepEqual(await bench.refresh([source], { force: true }), ["services failed"]);
  assert.match(bench.state(source), /^failed: lists\.example: not \{\}; the text of /);
  const text = await bench.keeper.text(source);
  assert.equal(new TextDecoder().decode(text!), '{"ä":1}');
});

Deno.test("ListKeeper.load() leaves the text of a list that is made meanwhile", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  await bench.refresh([ads]);
  const also: string[] = [];
  for await (const _ of bench.keeper.load([ads], () => also)) {
    also.push(more.id);
    await bench.refresh([more]);
  }
  assert.deepEqual(await bench.load([more], [ads.id]), ["li_b ||more.txt.example^"]);
});

Deno.test("ListKeeper.open() takes no ID of the index for a path", {
  permissions: "none",
}, async () => {
  const bench = await Bench.open();
  await bench.refresh([ads]);
  const { lists } = JSON.parse(bench.disk.text("/kept/index.json"));
  const copy = JSON.stringify(lists.li_a);
  const ids = ["../li_a", "/etc/passwd", "__proto__", "constructor", "li_a.txt", "", "li_\u0000"];
  const hostile = ids.map((id) => `${JSON.stringify(id)}: ${copy}`).join(", ");
  bench.disk.put("/kept/index.json", `{"version":1,"lists":{${hostile}, "li_a": ${copy}}}`);
  bench.disk.put("/li_a", "||outside.example^");
  bench.disk.put("/kept/constructor.txt", "||ads.txt.example^\n");
  await bench.reopen();
  assert.deepEqual(await bench.load([ads]), ["li_a ||ads.txt.example^"]);
  assert.deepEqual(bench.disk.paths(), ["/kept/index.json", "/kept/li_a.txt", "/li_a"]);
  const kept = JSON.parse(bench.disk.text("/kept/index.json"));
  assert.deepEqual(Object.keys(kept.lists), ["li_a"]);
});
