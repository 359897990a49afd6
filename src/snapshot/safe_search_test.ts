import assert from "node:assert/strict";
import { formatIp } from "../addr/mod.ts";
import { formatName, HashedName, parseName, Qtype } from "../dns/mod.ts";
import { NO_ENGINE, SafeSearch, SEARCH_ENGINES } from "./safe_search.ts";

const none = { permissions: "none" } as const;
const SEED = 4711;

const safeSearch = new SafeSearch(SEED);

function find(host: string, qtype: number = Qtype.A): string {
  const name = parseName(host);
  assert.ok(name !== null, host);
  const packet = new Uint8Array([1, 2, 3, ...name]);
  const hashed = new HashedName();
  hashed.read(packet, 3, packet.length, SEED);
  const engine = safeSearch.find(packet, hashed, qtype);
  if (engine === NO_ENGINE) return "none";
  const [target, address] = [safeSearch.target(engine), safeSearch.address(engine)];
  assert.equal(target === null, address !== null, "a host or an address");
  return target === null ? formatIp(address!) : formatName(target);
}

Deno.test("SEARCH_ENGINES are seven, each with all of its hosts", none, () => {
  const counts = SEARCH_ENGINES.map(({ name, hosts }) => `${name} ${hosts.length}`);
  assert.deepEqual(counts, [
    "Google 194",
    "YouTube 5",
    "Bing 2",
    "DuckDuckGo 3",
    "Ecosia 1",
    "Pixabay 1",
    "Yandex 52",
  ]);
  const hosts = SEARCH_ENGINES.flatMap((engine) => engine.hosts);
  assert.equal(new Set(hosts).size, hosts.length, "no host twice");
});

Deno.test("SafeSearch.find() leads each host of an engine to its safe one", none, async (t) => {
  for (const { name, hosts, safe } of SEARCH_ENGINES) {
    await t.step(name, () => {
      for (const host of hosts) {
        for (const qtype of [Qtype.A, Qtype.AAAA, Qtype.HTTPS]) {
          assert.equal(find(host, qtype), safe, host);
          assert.equal(find(host.toUpperCase(), qtype), safe, host);
        }
        for (const qtype of [Qtype.MX, Qtype.TXT, Qtype.CNAME, Qtype.SVCB, Qtype.ANY]) {
          assert.equal(find(host, qtype), "none", `${host} ${qtype}`);
        }
        assert.equal(find(`below.${host}`), "none");
      }
      // Or a query for it would be led to itself.
      if (/[a-z]/.test(safe)) assert.equal(find(safe), "none");
    });
  }
});

Deno.test("SafeSearch.find() knows whole names only", none, () => {
  const others = ["google.com", "www.google.example", "xwww.google.com", "mail.google.com", "com"];
  others.push("youtube.com", "bing.com", "yandex.example", "www.yandex.co", "safe.duckduckgo.com");
  for (const host of others) assert.equal(find(host), "none", host);
  assert.equal(find("www.google.de"), "forcesafesearch.google.com");
  assert.equal(find("www.google.com.vn"), "forcesafesearch.google.com");
  assert.equal(find("m.youtube.com"), "restrict.youtube.com");
  assert.equal(find("www.ya.ru"), "213.180.193.56");
});
