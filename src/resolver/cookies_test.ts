import assert from "node:assert/strict";
import { readJsonVector } from "../../tests/fuzz/dns_seeds.ts";
import { parseIp } from "../addr/mod.ts";
import { decodeHex, encodeHex, getU32 } from "../bytes/mod.ts";
import { decodeMessage, encodeQuery, HashedName } from "../dns/mod.ts";
import { COOKIE_OPTION_BYTES, type CookieClient, Cookies, writeCookie } from "./cookies.ts";
import { a, response, SEED } from "./fakes.ts";
import { ForwarderBench } from "./forward/fakes.ts";
import { ClientAddress, Query, Read, readQuery, Transport } from "./query.ts";
import { Verdict } from "./verdict.ts";

const none = { permissions: "none" } as const;
const COOKIE = "2464c4abcf10c957";
const HERE = "198.51.100.100";

function bytes(hex: string): Uint8Array {
  const decoded = decodeHex(hex);
  assert.ok(decoded !== null);
  return decoded;
}

function client(ip: string, cookie = COOKIE): CookieClient {
  const address = parseIp(ip);
  assert.ok(address !== null);
  return {
    address: { bytes: address, offset: 0, lengthBytes: address.length },
    cookieHigh: getU32(bytes(cookie), 0),
    cookieLow: getU32(bytes(cookie), 4),
  };
}

interface Vectors {
  readonly vectors: readonly {
    readonly name: string;
    readonly client_ip: string;
    readonly request: string;
    readonly secrets: readonly string[];
    readonly now: number;
    readonly reply: string;
  }[];
}
const vectors = readJsonVector<Vectors>("cookies-rfc9018.json");

Deno.test({
  name: "writeCookie() makes the cookies of RFC 9018, appendix A",
  permissions: "none",
  ignore: vectors === null,
  fn: async (t) => {
    for (const { name, client_ip, request, secrets, now, reply } of vectors?.vectors ?? []) {
      await t.step(name, () => {
        const secret = bytes(secrets[secrets.length - 1]);
        const made = [secret, bytes(secrets[0])].map((key) => {
          const target = new Uint8Array(24);
          writeCookie(key, client(client_ip, request.slice(0, 16)), now, target, 0);
          return encodeHex(target);
        });
        assert.ok(made.includes(reply), `${made.join(" or ")}, wanted: ${reply}`);
      });
    }
  },
});

Deno.test("Cookies takes another secret each day, and the same in every isolate", none, () => {
  let now = 1_800_000_000;
  const root = new Uint8Array(16).fill(3);
  const [one, other] = [0, 1].map(() => new Cookies(root, () => now));
  const made = (cookies: Cookies, who = client(HERE)) => {
    const target = new Uint8Array(COOKIE_OPTION_BYTES);
    assert.equal(cookies.write(who, target, 0), COOKIE_OPTION_BYTES);
    return encodeHex(target);
  };
  const first = made(one);
  assert.match(first, new RegExp(`^000a0018${COOKIE}01000000`));
  assert.equal(made(other), first);
  assert.notEqual(made(one, client("198.51.100.101")).slice(-16), first.slice(-16));
  assert.notEqual(made(one, client(HERE, "0".repeat(16))).slice(-16), first.slice(-16));
  now += 86_400;
  const next = made(one);
  assert.equal(made(other), next);
  const sameStamp = new Uint8Array(COOKIE_OPTION_BYTES);
  now -= 86_400;
  one.write(client(HERE), sameStamp, 0);
  assert.equal(encodeHex(sameStamp), first, "a clock that is set back finds its secret again");
});

type Options = NonNullable<Parameters<typeof encodeQuery>[2]>;
const withCookie = (data: string, payload = 1232): Options => ({
  edns: { payload, options: [{ code: 10, data: bytes(data) }] },
});

Deno.test("readQuery() refuses cookies of a wrong length (RFC 7873 §5.2.2)", none, () => {
  for (let length = 0; length <= 48; length++) {
    const isRight = length === 8 || (length >= 16 && length <= 40);
    const packet = encodeQuery("www.example", 1, withCookie("ab".repeat(length)));
    const query = new Query();
    query.cookies = new Cookies(new Uint8Array(16), () => 0);
    query.address.aim(Uint8Array.of(192, 0, 2, 1), 0, 4);
    const read = readQuery(packet, 0, packet.length, SEED, query, new HashedName());
    assert.equal(read, isRight ? Read.Ok : Read.FormErr, `${length}`);
    if (isRight) assert.deepEqual([query.hasCookie, query.cookieHigh], [true, 0xabababab]);
  }
});

/** The cookie of the answer that came last, or "". */
function cookieOf(bench: ForwarderBench): string {
  const { bytes: all, offset, length } = bench.front.reply;
  const message = decodeMessage(all.subarray(offset, offset + length));
  const option = message?.opt?.options.find(({ code }) => code === 10);
  return option === undefined ? "" : encodeHex(option.data);
}

Deno.test("Resolver answers cookies, to those who wait and from the cache", none, () => {
  const bench = new ForwarderBench();
  const from = HERE;
  const ask = (name: string, options: Options) => bench.ask(name, { from, ...options });
  ask("www.example", withCookie(COOKIE));
  bench.answer(bench.last, { records: [a("www.example", 300)] });
  const full = cookieOf(bench);
  assert.match(full, new RegExp(`^${COOKIE}01000000[0-9a-f]{24}$`));
  for (
    const [what, data] of [
      ["its own", full],
      ["a wrong one", `${full.slice(0, -2)}00`],
      ["one of another server", `${COOKIE}${"11".repeat(32)}`],
      ["one without ours", COOKIE],
    ]
  ) {
    const again = ask("www.example", withCookie(data));
    assert.match(again.answer, /^NOERROR rd ra; www\.example 300 A/, what);
    assert.match(cookieOf(bench), new RegExp(`^${COOKIE}01000000`), what);
  }
  ask("www.example", { edns: {} });
  assert.equal(cookieOf(bench), "", "none without one");
  ask("www.example", {});
  assert.equal(cookieOf(bench), "");
  bench.ask("www.example", withCookie(COOKIE));
  assert.equal(cookieOf(bench), "", "nobody knows where it is");
  ask("health.svc.test", withCookie(COOKIE));
  assert.notEqual(cookieOf(bench), "");
  const bad = ask("www.example", withCookie(COOKIE.slice(2)));
  assert.match(bad.answer, /^FORMERR/);
});

Deno.test("Resolver gives a cookie to who asks for nothing else (RFC 7873 §5.4)", none, () => {
  const bench = new ForwarderBench();
  const address = new ClientAddress();
  address.aim(Uint8Array.of(198, 51, 100, 100), 0, 4);
  const { reply } = bench.front;
  const ask = (options: Options) => {
    const whole = encodeQuery(".", 1, options);
    // Without its question, which stands behind the header.
    const packet = new Uint8Array([...whole.slice(0, 12), ...whole.slice(12 + 5)]);
    packet[5] = 0;
    const { length } = packet;
    assert.equal(
      bench.resolver.decide(Transport.Udp, address, packet, 0, length, reply),
      Verdict.Send,
    );
    return decodeMessage(reply.bytes.slice(reply.offset, reply.offset + reply.length));
  };
  const given = ask(withCookie(COOKIE));
  assert.deepEqual([given?.rcode, given?.questions.length, given?.answers.length], [0, 0, 0]);
  assert.match(cookieOf(bench), new RegExp(`^${COOKIE}01000000[0-9a-f]{24}$`));
  assert.equal(ask({ edns: {} })?.rcode, 1);
});

Deno.test("Resolver cuts an answer that has no room beside the cookie", none, () => {
  const bench = new ForwarderBench();
  const records = Array.from({ length: 40 }, (_, i) => a("www.example", 300, i));
  const { length } = response({ name: "www.example", type: 1, records });
  bench.ask("www.example", { from: HERE, ...withCookie(COOKIE) });
  bench.answer(bench.last, { records });
  const { reply } = bench.front;
  for (const [room, isCut] of [[39, false], [38, true]] as const) {
    const options = withCookie(COOKIE, length + room);
    const { answer } = bench.ask("www.example", { from: HERE, ...options });
    assert.equal(/^NOERROR tc/.test(answer), isCut);
    assert.ok(reply.length <= length + room);
    assert.notEqual(cookieOf(bench), "");
  }
});
