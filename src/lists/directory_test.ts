import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { ListDirectory } from "./directory.ts";
import { decodeFilterLists, decodeRegistry } from "./directory_text.ts";
import { type FakeAnswer, FakeClock, FakeNetwork, MemoryDisk } from "./fakes.ts";

const none = { permissions: "none" } as const;
const HOUR_MS = 3_600_000;
const API = "https://directory.example/api/";

const LISTS = [
  { id: 1, name: "Hosts", description: "one", syntaxIds: [1], tagIds: [2, 3] },
  { id: 2, name: "Cosmetic", description: null, syntaxIds: [3], tagIds: [] },
  { id: 3, name: "Allow", description: null, syntaxIds: [2], tagIds: [10] },
  { id: 4, name: "Domains", description: null, syntaxIds: [3, 2], tagIds: [99] },
  { id: "five", name: "of another shape" },
];
const DETAILS: Record<string, unknown> = {
  "1": {
    ...LISTS[0],
    homeUrl: "https://home.example/",
    viewUrls: [
      { segmentNumber: 2, primariness: 1, url: "https://lists.example/1b.txt" },
      { segmentNumber: 1, primariness: 2, url: "https://mirror.example/1a.txt" },
      { segmentNumber: 1, primariness: 1, url: "https://lists.example/1a.txt" },
      { segmentNumber: 3, primariness: 1, url: "http://plain.example/1c.txt" },
    ],
  },
  "4": { ...LISTS[3], homeUrl: "javascript:alert(1)", viewUrls: [] },
};

class Bench {
  readonly clock = new FakeClock();
  readonly network: FakeNetwork;
  directory: ListDirectory;

  constructor(readonly disk: MemoryDisk, answer: (url: URL) => FakeAnswer, readonly url = API) {
    this.network = new FakeNetwork(answer);
    this.directory = this.reopen();
  }

  reopen(): ListDirectory {
    const { clock, disk, network, url } = this;
    this.directory = new ListDirectory({ url, get: network.get, clock, disk, directory: "/kept" });
    return this.directory;
  }
}

const json = (value: unknown): FakeAnswer => ({ body: JSON.stringify(value) });

/** FilterLists' API with these lists. */
const api = (lists: unknown[]) => (url: URL): FakeAnswer => {
  const path = url.pathname.replace(/^\/api\//, "");
  if (path === "lists") return json(lists);
  if (path === "tags") return json([{ id: 2, name: "ads" }, { id: 3, name: "privacy" }, 7]);
  const details = DETAILS[path.replace(/^lists\//, "")];
  return details === undefined ? { status: 404 } : json(details);
};

Deno.test("ListDirectory reads FilterLists with the addresses of a small one", none, async () => {
  const bench = new Bench(new MemoryDisk(), api(LISTS));
  const { fetchedAtMs, items } = await bench.directory.lists();
  assert.equal(fetchedAtMs, bench.clock.timeMs);
  assert.deepEqual(items, [
    {
      id: "1",
      name: "Hosts",
      description: "one",
      url: "https://lists.example/1a.txt",
      homepage: "https://home.example/",
      tags: ["ads", "privacy"],
    },
    { id: "4", name: "Domains", description: "", url: null, homepage: null, tags: [] },
  ]);
  await assert.rejects(
    bench.directory.details("2"),
    (error) => error instanceof SvcError && error.code === "not_found",
    "what is not readable is not there",
  );
  await assert.rejects(
    bench.directory.details("4"),
    (error) => error instanceof SvcError && /no address/.test(error.message),
  );
});

Deno.test("ListDirectory asks a large FilterLists for a list when it is opened", none, async () => {
  const many = Array.from({ length: 65 }, (_, i) => ({ ...LISTS[0], id: i + 1 }));
  const bench = new Bench(new MemoryDisk(), api(many));
  const { items } = await bench.directory.lists();
  assert.equal(items.length, 65);
  assert.ok(items.every(({ url }) => url === null));
  assert.deepEqual(bench.network.asked.map(({ url }) => new URL(url).pathname), [
    "/api/lists",
    "/api/tags",
  ]);
  const { url, urls } = await bench.directory.details("1");
  assert.equal(url, "https://lists.example/1a.txt");
  assert.deepEqual(urls, ["https://lists.example/1a.txt", "https://lists.example/1b.txt"]);
  await assert.rejects(
    bench.directory.details("9"),
    (error) => error instanceof SvcError && error.code === "unavailable",
  );
});

Deno.test("ListDirectory is fetched on demand, by one, and kept a day", none, async () => {
  const bench = new Bench(new MemoryDisk(), api(LISTS.slice(1, 4)));
  assert.equal(bench.network.asked.length, 0);
  const both = await Promise.all([bench.directory.lists(), bench.directory.lists()]);
  const asked = bench.network.asked.length;
  assert.deepEqual(both[0], both[1]);
  assert.equal(asked, 3, "lists, tags, and one list's details");
  bench.clock.timeMs += 24 * HOUR_MS - 1;
  assert.equal((await bench.reopen().lists()).items.length, 1, "after a restart as well");
  assert.equal(bench.network.asked.length, asked);
  bench.clock.timeMs += 1;
  bench.network.answer = api(LISTS.slice(0, 4));
  assert.equal((await bench.directory.lists()).items.length, 2);
});

Deno.test("ListDirectory shows the former one while it can't be fetched", none, async () => {
  const bench = new Bench(new MemoryDisk(), () => ({ status: 500 }));
  const refused = (error: unknown) =>
    error instanceof SvcError && error.code === "unavailable" &&
    error.message === "the directory of lists: directory.example: the server answered 500";
  await assert.rejects(bench.directory.lists(), refused);
  bench.network.answer = api(LISTS);
  await assert.rejects(bench.directory.lists(), refused, "a failing one is left alone for a while");
  bench.clock.timeMs += 60_000;
  const { fetchedAtMs } = await bench.directory.lists();
  for (const body of ["<html>", "{}", "[]", '{"filters":[]}']) {
    bench.clock.timeMs += 48 * HOUR_MS;
    bench.network.answer = () => ({ body });
    assert.equal((await bench.directory.lists()).fetchedAtMs, fetchedAtMs, body);
  }
});

Deno.test("ListDirectory takes no other address's directory, nor a damaged one", none, async () => {
  const disk = new MemoryDisk();
  await new Bench(disk, api(LISTS)).directory.lists();
  const other = new Bench(disk, () => ({ status: 500 }), "https://other.example/");
  await assert.rejects(other.directory.lists());
  disk.put("/kept/directory.json", "{");
  await assert.rejects(new Bench(disk, () => ({ status: 500 })).directory.lists());
});

Deno.test("decodeRegistry() leaves out what is old, problematic or can't be fetched", none, () => {
  const filter = {
    filterKey: "a",
    filterId: 1,
    name: "A",
    description: "about",
    deprecated: false,
    homepage: "https://a.example/",
    downloadUrl: "https://lists.example/filter_1.txt",
    tags: [1, 2],
  };
  const filters = [
    filter,
    { ...filter, filterKey: "b", deprecated: true },
    { ...filter, filterKey: "c", tags: [111] },
    { ...filter, filterKey: "d", downloadUrl: "http://lists.example/" },
    { filterId: 5, name: "E", downloadUrl: filter.downloadUrl },
    { name: "of another shape" },
  ];
  const items = decodeRegistry({ filters, tags: [{ tagId: 2, keyword: "purpose:ads" }] });
  assert.deepEqual(items?.map(({ id, tags }) => [id, ...tags]), [["a", "purpose:ads"], ["5"]]);
  assert.equal(decodeRegistry([]), null);
  assert.equal(decodeFilterLists({ filters }, new Map()), null);
});

const REAL = new URL("../../../shared/lists/filters.json", import.meta.url);
const isThere = (() => {
  try {
    return Deno.statSync(REAL).isFile;
  } catch {
    console.warn("ListDirectory on a real file: ignored, ../shared/lists is not here");
    return false;
  }
})();

Deno.test({
  name: "ListDirectory reads the registry's file",
  permissions: { read: true },
  ignore: !isThere,
  fn: async () => {
    const body = Deno.readTextFileSync(REAL);
    const url = "https://registry.example/assets/filters.json";
    const bench = new Bench(new MemoryDisk(), () => ({ body }), url);
    const { items } = await bench.directory.lists();
    assert.deepEqual(bench.network.asked.map((one) => one.url), [url]);
    assert.equal(items.length, 64);
    assert.equal(new Set(items.map(({ id }) => id)).size, 64);
    const [{ id }] = items;
    assert.match((await bench.directory.details(id)).urls[0], /^https:/);
  },
});
