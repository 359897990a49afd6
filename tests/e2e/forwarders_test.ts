// Goal: forwarders of others' making use the service as their upstream over DNS over TLS: they check
// its name, keep connections for many queries, and hand on what it blocks. Method: unbound and stubby
// as programs of their own, asked over UDP, with a scripted upstream behind the service.

import assert from "node:assert/strict";
import { type HostPort, parseHostPort } from "../../src/addr/mod.ts";
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { ask, exchangeUdp, nextId } from "./clients.ts";
import { address, answer, FakeUpstream, type Seen } from "./fake_upstream.ts";
import { freePort, hasProgram, OwnDirectory, PERMISSIONS, Service, until } from "./harness.ts";

const NAME = "dns.svc.test";
const BLOCKED = "ads.example";
const LARGE = "large.example";
/** One string of a TXT record, and a few of them: more than UDP carries without asking. */
const TEXT = Uint8Array.from([200, ...new Uint8Array(200).fill(0x78)]);
const TEXTS = 12;
/** Queries at a time, and in all: far more than connections. */
const QUERIES = 300;
const AT_A_TIME = 30;
/** One try of asking whether a program is ready. */
const READY_MS = 500;

/** A service with DNS over TLS, its authority's certificate beside it. */
class Server {
  private constructor(
    readonly service: Service,
    readonly upstream: FakeUpstream,
    readonly directory: string,
    private readonly stack: AsyncDisposableStack,
  ) {}

  static async start(): Promise<Server> {
    await using stack = new AsyncDisposableStack();
    const directory = stack.use(await OwnDirectory.make()).path;
    const authority = await makeAuthority();
    await Deno.writeTextFile(`${directory}/ca.crt`, authority.cert);
    await writePair(directory, "server", await authority.issue({ names: [NAME] }));
    const script = (query: Seen) => {
      if (query.type !== Qtype.TXT) return address(query, "192.0.2.7");
      const record = { type: Qtype.TXT, ttl: 60, data: TEXT };
      const answers = Array.from({ length: TEXTS }, (_, i) => ({
        ...record,
        data: Uint8Array.from([...TEXT.subarray(0, -1), 0x61 + i]),
      }));
      return answer(query, { answers });
    };
    const upstream = stack.use(await FakeUpstream.start(script));
    const tls = { cert: "server.crt", key: "server.key", server_name: NAME };
    const service = stack.use(
      await Service.start({
        directory,
        config: {
          upstream: [{ address: upstream.text }],
          filter: { rules: [`||${BLOCKED}^`] },
          "server.tls": { ...tls, dot: ["127.0.0.1:0"] },
        },
      }),
    );
    return new Server(service, upstream, directory, stack.move());
  }

  get port(): number {
    return this.service.encrypted.dot[0].port;
  }

  async metric(line: string): Promise<number> {
    const { listen } = await this.service.logged("serving the API");
    const text = await (await fetch(`http://${(listen as string[])[0]}/metrics`)).text();
    const found = text.split("\n").find((row) => row.startsWith(`${line} `));
    assert.ok(found !== undefined, `${line} is in\n${text}`);
    return Number(found.split(" ").at(-1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stack.disposeAsync();
  }
}

/** A forwarder that runs; it answers when `start` returns. */
class Forwarder {
  private constructor(readonly address: HostPort, private readonly child: Deno.ChildProcess) {}

  /** Runs `program` with `config(port)` in a file, which follows `args`. */
  static async start(
    { directory }: Server,
    program: string,
    args: readonly string[],
    config: (port: number) => string,
  ): Promise<Forwarder> {
    const port = freePort();
    // By the ending stubby tells YAML from JSON; unbound asks for none.
    const file = `${directory}/${program}-${port}.yml`;
    await Deno.writeTextFile(file, config(port));
    const child = new Deno.Command(program, {
      args: [...args, file],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    const forwarder = new Forwarder(parseHostPort(`127.0.0.1:${port}`)!, child);
    const query = encodeQuery("ready.example", Qtype.A, { id: nextId() });
    try {
      await until(
        `an answer of ${program}`,
        () => exchangeUdp(forwarder.address, query, READY_MS).then(() => true, () => false),
      );
    } catch (error) {
      await forwarder[Symbol.asyncDispose]();
      throw error;
    }
    return forwarder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.child.kill("SIGTERM");
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // It has ended.
    }
    await this.child.status;
  }
}

function unboundConf(server: Server, name: string): (port: number) => string {
  return (port) =>
    `server:
  interface: 127.0.0.1@${port}
  num-threads: 1
  username: ""
  chroot: ""
  directory: "${server.directory}"
  pidfile: ""
  use-syslog: no
  module-config: "iterator"
  do-not-query-localhost: no
  tls-cert-bundle: "${server.directory}/ca.crt"
  outgoing-num-tcp: 10
forward-zone:
  name: "."
  forward-tls-upstream: yes
  forward-addr: 127.0.0.1@${server.port}#${name}
remote-control:
  control-enable: no
`;
}

function stubbyConf(server: Server, name: string): (port: number) => string {
  return (port) =>
    `resolution_type: GETDNS_RESOLUTION_STUB
dns_transport_list:
  - GETDNS_TRANSPORT_TLS
tls_authentication: GETDNS_AUTHENTICATION_REQUIRED
tls_query_padding_blocksize: 128
edns_client_subnet_private: 1
idle_timeout: 10000
round_robin_upstreams: 1
appdata_dir: "${server.directory}"
tls_ca_file: "${server.directory}/ca.crt"
listen_addresses:
  - 127.0.0.1@${port}
upstream_recursive_servers:
  - address_data: 127.0.0.1
    tls_port: ${server.port}
    tls_auth_name: "${name}"
`;
}

for (
  const [program, args, conf] of [
    ["unbound", ["-d", "-c"], unboundConf],
    ["stubby", ["-C"], stubbyConf],
  ] as const
) {
  Deno.test({
    name: `${program} forwards to the service over TLS`,
    ignore: !hasProgram(program),
    permissions: PERMISSIONS,
    fn: async (t) => {
      await using server = await Server.start();
      const { service } = server;
      await t.step("names, blocked ones and large answers come through", async () => {
        await using forwarder = await Forwarder.start(server, program, args, conf(server, NAME));
        const at = forwarder.address;
        const passed = await ask(at, "www.example", Qtype.A);
        assert.deepEqual([passed.rcode, passed.answers[0].data], [Rcode.NoError, "192.0.2.7"]);
        const blocked = await ask(at, `x.${BLOCKED}`, Qtype.A);
        assert.deepEqual([blocked.rcode, blocked.answers[0].data], [Rcode.NoError, "0.0.0.0"]);
        const large = await ask(at, LARGE, Qtype.TXT, { edns: { payload: 4_096 } });
        assert.deepEqual([large.rcode, large.answers.length], [Rcode.NoError, TEXTS]);
        assert.ok(server.upstream.seen.every(({ name }) => !name.toLowerCase().includes(BLOCKED)));
      });
      await t.step("many queries share few connections", async () => {
        await using forwarder = await Forwarder.start(server, program, args, conf(server, NAME));
        const opened = 'svc_connections_total{protocol="dot"}';
        const before = await server.metric(opened);
        let next = 0;
        await Promise.all(Array.from({ length: AT_A_TIME }, async () => {
          while (next < QUERIES) {
            const { rcode, answers } = await ask(forwarder.address, `n${next++}.example`, Qtype.A);
            assert.deepEqual([rcode, answers[0].data], [Rcode.NoError, "192.0.2.7"]);
          }
        }));
        const connections = await server.metric(opened) - before;
        assert.ok(connections <= AT_A_TIME, `${connections} connections for ${QUERIES} queries`);
      });
      await t.step("a certificate of another name is not believed", async () => {
        const before = server.upstream.seen.length;
        const wrong = "other.svc.test";
        await using forwarder = await Forwarder.start(server, program, args, conf(server, wrong));
        const { rcode, answers } = await ask(forwarder.address, "never.example", Qtype.A);
        assert.deepEqual([rcode, answers], [Rcode.ServFail, []]);
        assert.equal(server.upstream.seen.length, before);
      });
      service.assertCalm();
    },
  });
}
