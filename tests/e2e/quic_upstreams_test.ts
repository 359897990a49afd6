// Goal: what is asked over QUIC is asked of the right server, and is answered whatever that server does.
// Method: one service asks another one over QUIC, which is killed, stopped and started again; a server
// of ours where what stands on the streams matters.

import assert from "node:assert/strict";
import { formatHostPort, type HostPort } from "../../src/addr/mod.ts";
import { type Message, Qtype, Rcode } from "../../src/dns/mod.ts";
import { type AskedQuic, fakeDoq } from "../../src/transport/exchange/fakes.ts";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { ask, decode, lookUp, nextId } from "./clients.ts";
import { address, FakeUpstream, seenInStream } from "./fake_upstream.ts";
import { OwnDirectory, PERMISSIONS, Service, sideBySide, type Toml, until } from "./harness.ts";

const FIRST = "192.0.2.53";
const SECOND = "192.0.2.54";
const BLOCK_BYTES = 128;
const OPT_PADDING = 12;

const dataOf = ({ answers }: Message) => answers.map(({ data }) => data).join();
const freshName = (label = "n") => `${label}${nextId()}.test`;

/** A certificate for `dns.test`, in a directory of its own. */
class Trust implements AsyncDisposable {
  private constructor(
    readonly directory: string,
    readonly issued: { readonly cert: string; readonly key: string },
    private readonly own: OwnDirectory,
  ) {}

  static async make(): Promise<Trust> {
    const own = await OwnDirectory.make("svc-quic-");
    const authority = await makeAuthority();
    const issued = await authority.issue({ names: ["dns.test"], ips: ["127.0.0.1"] });
    await writePair(own.path, "server", issued);
    await Deno.writeTextFile(`${own.path}/ca.pem`, authority.cert);
    return new Trust(own.path, issued, own);
  }

  get ca(): string {
    return `${this.directory}/ca.pem`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.own[Symbol.asyncDispose]();
  }
}

/** A service that answers over QUIC, by a plain upstream of a test. */
async function serverOf(trust: Trust, upstream: FakeUpstream, at: string): Promise<Service> {
  return await Service.start({
    config: {
      upstream: [{ address: upstream.text }],
      "server.tls": {
        cert: `${trust.directory}/server.crt`,
        key: `${trust.directory}/server.key`,
        doq: [at],
      },
    },
  });
}

/** One that asks; its upstreams may take long, as a busy machine has other things to do. */
function askerOf(...upstreams: Readonly<Record<string, Toml>>[]): Promise<Service> {
  const upstream = upstreams.map((one) => ({ timeout: "10s", ...one }));
  return Service.start({ config: { upstream } });
}

const quicAt = (server: HostPort, name = "dns.test") => `quic://${formatHostPort(server)}#${name}`;
const statusOf = async (service: Service) => await (await Api.of(service)).call("GET", "status");

async function answersAndComesBack(): Promise<void> {
  await using trust = await Trust.make();
  await using behind = await FakeUpstream.start((query) => address(query, FIRST));
  await using plain = await FakeUpstream.start((query) => address(query, SECOND));
  let server = await serverOf(trust, behind, "127.0.0.1:0");
  try {
    const [at] = server.encrypted.doq;
    const first = { address: quicAt(at), ca: trust.ca };
    await using service = await askerOf(first, { address: plain.text });
    const askNew = async () => dataOf(await ask(service.address, freshName(), Qtype.A));
    const text = await lookUp("dig", service.address, `+short ${freshName()} A`);
    assert.equal(text.trim(), FIRST);
    const all = await Promise.all(Array.from({ length: 200 }, () => askNew()));
    assert.ok(all.filter((data) => data === FIRST).length > 100, "the first is asked first");
    assert.ok(all.every((data) => data === FIRST || data === SECOND));
    await until("its health, reported", async () => {
      const { upstreams: [seen] } = await statusOf(service);
      return seen?.address === first.address && seen.healthy === true && seen.latency_ms !== null;
    });
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      server.kill(signal);
      await server.ended;
      await until("it is put aside", async () => {
        assert.equal(await askNew(), SECOND);
        return (await statusOf(service)).upstreams[0].healthy === false;
      }, 60_000);
      await server[Symbol.asyncDispose]();
      server = await serverOf(trust, behind, formatHostPort(at));
      await until("the first, trusted again", async () => await askNew() === FIRST, 60_000);
    }
    service.assertCalm();
  } finally {
    await server[Symbol.asyncDispose]();
  }
}

async function refusesTheWrongOnes(): Promise<void> {
  await using trust = await Trust.make();
  await using server = fakeDoq(trust.issued);
  const at = { ip: Uint8Array.of(127, 0, 0, 1), port: server.port };
  const rows = [
    [{ address: quicAt(at, "other.test"), ca: trust.ca }, /is not valid for other\.test/],
    [{ address: quicAt(at) }, /an authority that is not trusted/],
  ] as const;
  for (const [upstream, want] of rows) {
    await using service = await askerOf(upstream);
    const message = await ask(service.address, freshName(), Qtype.A, { edns: {} });
    assert.equal(message.rcode, Rcode.ServFail);
    const [{ data }] = message.opt?.options ?? [];
    assert.match(new TextDecoder().decode(data.subarray(2)), want);
    const { reason } = await service.logged("upstream does not answer");
    assert.match(String(reason), want);
  }
  assert.equal(server.asked.length, 0, "nothing was said to it");
}

/** What stands on a stream in place of an answer, by the label that is asked for. */
const MISDEEDS: Readonly<Record<string, (asked: AskedQuic) => void>> = {
  half: ({ write }) => write(Uint8Array.of(0, 90, 0, 0, 1), true),
  endless: ({ write }) => write(Uint8Array.of(0, 90, 0, 0, 1), false),
  nothing: ({ write }) => write(new Uint8Array(0), true),
  short: ({ write }) => write(Uint8Array.of(0, 2, 0, 0, 1), true),
  flood: ({ write }) => write(new Uint8Array(200_000), false),
  two: ({ packet, write }) => {
    const one = address(seenInStream(packet), FIRST);
    const frame = [one.length >> 8, one.length & 255, ...one];
    write(Uint8Array.from([...frame, ...frame]), true);
  },
};

async function survivesAHostileOne(): Promise<void> {
  await using trust = await Trust.make();
  await using plain = await FakeUpstream.start((query) => address(query, SECOND));
  await using server = fakeDoq(trust.issued);
  const lengths = new Set<number>();
  server.script = (asked) => {
    const seen = seenInStream(asked.packet);
    const misdeed = MISDEEDS[/^[a-z]+/.exec(seen.name.toLowerCase())![0]];
    const { id, opt } = decode(asked.packet);
    assert.equal(id, 0);
    assert.equal(opt?.options.filter(({ code }) => code === OPT_PADDING).length, 1);
    lengths.add(asked.packet.length);
    if (misdeed !== undefined) misdeed(asked as AskedQuic);
    else asked.reply(address(seen, FIRST));
  };
  const at = { ip: Uint8Array.of(127, 0, 0, 1), port: server.port };
  await using service = await askerOf(
    { address: quicAt(at), ca: trust.ca },
    { address: plain.text },
  );
  for (const label of Object.keys(MISDEEDS)) {
    const message = await ask(service.address, freshName(label), Qtype.A);
    assert.equal(dataOf(message), SECOND, label);
    await until(`an answer of it after ${label}`, async () => {
      return dataOf(await ask(service.address, freshName("good"), Qtype.A)) === FIRST;
    });
  }
  assert.ok([...lengths].every((length) => length % BLOCK_BYTES === 0), "padded (RFC 8467)");
  assert.ok(server.connections.opened < server.asked.length / 2, "connections are used again");
  service.assertCalm();
}

async function findsItsAddress(): Promise<void> {
  await using trust = await Trust.make();
  await using server = fakeDoq(trust.issued);
  server.script = ({ packet, reply }) => reply(address(seenInStream(packet), FIRST));
  await using service = await askerOf({
    address: `quic://dns.test:${server.port}`,
    ca: trust.ca,
    bootstrap: ["127.0.0.1"],
    domains: ["test"],
  });
  assert.equal(dataOf(await ask(service.address, freshName(), Qtype.A)), FIRST);
}

Deno.test("svc run asks upstreams over QUIC", {
  permissions: PERMISSIONS,
}, (t) =>
  sideBySide(t, [
    ["answers by another service, killed and stopped and started again", answersAndComesBack],
    ["refuses servers that are not the right one", refusesTheWrongOnes],
    ["loses no answer to a hostile server", survivesAHostileOne],
    ["connects to the addresses of bootstrap", findsItsAddress],
  ]));
