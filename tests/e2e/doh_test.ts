// Goal: DNS over HTTPS and Oblivious DoH as clients of others' making see them. Method: curl, kdig
// and h2load against the running service, a scripted upstream behind it, and for Oblivious DoH a
// client of the tests' own.

import assert from "node:assert/strict";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { connect as connect2 } from "node:http2";
import { Buffer } from "node:buffer";
import type { HostPort } from "../../src/addr/mod.ts";
import { encodeBase64url } from "../../src/bytes/mod.ts";
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { decode } from "./clients.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { address, answer, FakeUpstream } from "./fake_upstream.ts";
import {
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  type Toml,
  until,
} from "./harness.ts";
import { oblivious } from "./oblivious.ts";

const NAME = "dns.svc.example";
const DNS_MESSAGE = "application/dns-message";
/** Requests that one connection may have waiting. */
const REQUESTS_MAX = 128;

/** A service with DNS over HTTPS, and what its clients have to know. */
class Doh {
  private constructor(
    readonly directory: string,
    readonly upstream: FakeUpstream,
    readonly service: Service,
    readonly ca: string,
    private readonly stack: AsyncDisposableStack,
  ) {}

  static async start(
    tls: Record<string, Toml> = {},
    options: { workers?: number; without?: readonly string[] } = {},
  ): Promise<Doh> {
    await using stack = new AsyncDisposableStack();
    const directory = stack.use(await OwnDirectory.make("svc-doh-")).path;
    const authority = await makeAuthority();
    const names = [NAME, `*.${NAME}`];
    const pair = await writePair(
      directory,
      "server",
      await authority.issue({ names, ips: ["127.0.0.1"] }),
    );
    await Deno.writeTextFile(`${directory}/ca.pem`, authority.cert);
    const upstream = stack.use(await FakeUpstream.start());
    const files = { cert: pair.certFile, key: pair.keyFile, server_name: NAME };
    const listen = ["127.0.0.1:0"];
    const service = stack.use(
      await Service.start({
        config: {
          server: { listen, workers: options.workers ?? 1, tls: { ...files, doh: listen, ...tls } },
          upstream: [{ address: upstream.text }],
        },
        without: options.without ?? [],
      }),
    );
    return new Doh(directory, upstream, service, `${directory}/ca.pem`, stack.move());
  }

  get address(): HostPort {
    return this.service.encrypted.doh[0];
  }

  url(path = "/dns-query"): string {
    return `https://${NAME}:${this.address.port}${path}`;
  }

  /** Runs curl with a body; status, fields and body of what came back. */
  async curl(
    args: readonly string[],
    url: string,
    body?: Uint8Array,
  ): Promise<
    { status: number; fields: Record<string, string>; body: Uint8Array; version: string }
  > {
    const [heads, out, sent] = ["heads", "out", "sent"].map((name) => `${this.directory}/${name}`);
    await Deno.writeFile(out, new Uint8Array(0));
    if (body !== undefined) await Deno.writeFile(sent, body);
    const { stderr, code } = await runProgram(
      "curl",
      ...["-sS", "--max-time", "20", "--cacert", this.ca, "-D", heads, "-o", out],
      ...["--resolve", `${NAME}:${this.address.port}:127.0.0.1`],
      ...(body === undefined ? [] : ["--data-binary", `@${sent}`]),
      ...args,
      url,
    );
    assert.equal(code, 0, stderr);
    const lines = (await Deno.readTextFile(heads)).trim().split("\r\n\r\n").at(-1)!.split("\r\n");
    const fields = Object.fromEntries(lines.slice(1).map((line) => line.split(": ", 2)));
    const [, version, status] = /^HTTP\/(\S+) (\d+)/.exec(lines[0])!;
    return { status: Number(status), version, fields, body: await Deno.readFile(out) };
  }

  /** A TLS connection. */
  tls(protocols: readonly string[], serverName = NAME): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = connectTls({
        host: "127.0.0.1",
        port: this.address.port,
        servername: serverName,
        ca: Deno.readTextFileSync(this.ca),
        ALPNProtocols: [...protocols],
      });
      socket.once("secureConnect", () => resolve(socket));
      socket.once("error", reject);
    });
  }

  /** The sum of a family's samples that carry a label. */
  async metric(name: string, label = ""): Promise<number> {
    const { listen } = await this.service.logged("serving the API");
    const text = await (await fetch(`http://${(listen as string[])[0]}/metrics`)).text();
    const rows = text.split("\n").filter((row) =>
      /^\w+/.exec(row)?.[0] === name && row.includes(label)
    );
    assert.ok(rows.length > 0, `${name} ${label} is told`);
    return rows.reduce((sum, row) => sum + Number(row.split(" ").at(-1)), 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stack.disposeAsync();
  }
}

const ask = (name: string, id = 0) => encodeQuery(name, Qtype.A, { id });

Deno.test("svc run answers over HTTPS", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("curl"),
}, async (t) => {
  await using doh = await Doh.start();
  for (const version of ["--http1.1", "--http2"]) {
    for (const method of ["GET", "POST"]) {
      await t.step(`curl ${version} ${method}`, async () => {
        const query = ask(
          `${method}${version.slice(2).replace(".", "")}.example`.toLowerCase(),
          77,
        );
        const { status, fields, body, version: spoken } = method === "GET"
          ? await doh.curl([version], `${doh.url()}?dns=${encodeBase64url(query)}`)
          : await doh.curl([version, "-H", `content-type: ${DNS_MESSAGE}`], doh.url(), query);
        assert.deepEqual([status, spoken], [200, version === "--http2" ? "2" : "1.1"]);
        assert.equal(fields["content-type"], DNS_MESSAGE);
        assert.equal(fields["content-length"], String(body.length));
        const message = decode(body);
        assert.deepEqual([message.id, message.rcode], [77, Rcode.NoError]);
        assert.equal(fields["cache-control"], `max-age=${message.answers[0].ttl}`);
        assert.ok(!Number.isNaN(Date.parse(fields.date)));
      });
    }
    await t.step(`curl ${version} HEAD`, async () => {
      const { status, fields, body } = await doh.curl(
        [version, "-I"],
        `${doh.url()}?dns=${encodeBase64url(ask("health.svc.test"))}`,
      );
      assert.deepEqual([status, fields["content-type"], body.length > 0], [200, DNS_MESSAGE, true]);
      assert.equal(fields["cache-control"], "max-age=10");
    });
  }
  await t.step("curl names a whole URL as its target", async () => {
    const url = `${doh.url()}?dns=${encodeBase64url(ask("target.example", 77))}`;
    const target = ["--http1.1", "--request-target"];
    const { status, body } = await doh.curl([...target, url], doh.url());
    assert.deepEqual([status, decode(body).id], [200, 77]);
    const user = await doh.curl([...target, url.replace("//", "//a@")], doh.url());
    assert.equal(user.status, 400);
  });
  await t.step("negative answers are kept as their SOA says, failures not at all", async () => {
    doh.upstream.script = (query) => answer(query, { rcode: Rcode.ServFail });
    const failed = await doh.curl([], `${doh.url()}?dns=${encodeBase64url(ask("fails.example"))}`);
    assert.deepEqual([failed.status, failed.fields["cache-control"]], [200, "max-age=0"]);
    assert.equal(decode(failed.body).rcode, Rcode.ServFail);
    doh.upstream.script = (query) => address(query);
  });
  await t.step("a readable message that is no query gets FORMERR", async () => {
    const bad = ask("bad.example");
    bad[5] = 2; // Two questions.
    const { status, body } = await doh.curl(["-H", `content-type: ${DNS_MESSAGE}`], doh.url(), bad);
    assert.deepEqual([status, decode(body.slice(0, 12)).rcode], [200, Rcode.FormErr]);
  });
  const statuses:
    readonly (readonly [string, readonly string[], string, Uint8Array | undefined, number])[] = [
      ["no message", [], doh.url(), undefined, 400],
      ["no base64url", [], `${doh.url()}?dns=a+b`, undefined, 400],
      ["a message of two bytes", [], `${doh.url()}?dns=AAAA`, undefined, 400],
      ["another path", [], doh.url("/"), undefined, 404],
      ["no Oblivious DoH", [], doh.url("/.well-known/odohconfigs"), undefined, 404],
      ["DELETE", ["-X", "DELETE"], doh.url(), undefined, 405],
      [
        "a large body",
        ["-H", `content-type: ${DNS_MESSAGE}`],
        doh.url(),
        new Uint8Array(70_000),
        413,
      ],
      [
        "a large body without its length",
        [
          ...["-H", "transfer-encoding: chunked", "-H", `content-type: ${DNS_MESSAGE}`],
        ],
        doh.url(),
        new Uint8Array(70_000),
        413,
      ],
      ["another content type", [], doh.url(), ask("a.example"), 415],
      ["a long field", ["-H", `x: ${"y".repeat(17_000)}`], doh.url(), undefined, 431],
    ];
  for (const version of ["--http1.1", "--http2"]) {
    for (const [name, args, url, body, want] of statuses) {
      await t.step(`curl ${version}: ${want} for ${name}`, async () => {
        const { status, fields } = await doh.curl([version, ...args], url, body);
        assert.equal(status, want);
        assert.match(fields["content-type"], /^text\/plain/);
        if (want === 405) assert.equal(fields.allow, "GET, HEAD, POST");
      });
    }
  }
  await t.step("as a resolver of curl", async () => {
    const { code, stderr } = await runProgram(
      "curl",
      ...["-sS", "-v", "--max-time", "20", "--doh-insecure"],
      ...["--doh-url", `https://127.0.0.1:${doh.address.port}/dns-query`],
      ...["--connect-timeout", "1", "http://resolved.example:1/"],
    );
    assert.notEqual(code, 6, stderr); // 6: it could not resolve the name.
    assert.match(stderr, /Trying 192\.0\.2\.|DOH Host name: resolved\.example/);
  });
  await t.step("counts", async () => {
    assert.ok(await doh.metric("svc_https_rejected_total") >= statuses.length);
  });
  doh.service.assertCalm();
});

Deno.test("kdig asks over HTTPS, as any client ID", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("kdig"),
}, async (t) => {
  await using doh = await Doh.start({}, { workers: 2 });
  const kdig = async (...args: string[]) => {
    const at = ["@127.0.0.1", "-p", String(doh.address.port), "+timeout=20", "+retry=0"];
    const trust = [`+tls-ca=${doh.ca}`, `+tls-hostname=${NAME}`];
    const { stdout } = await runProgram("kdig", ...at, ...trust, ...args);
    return stdout;
  };
  for (
    const args of [
      [`+https=${NAME}/dns-query`],
      [`+https-get`, `+https=${NAME}/dns-query`],
      [`+https=${NAME}/dns-query/phone`],
      [`+https=${NAME}/dns-query`, `+tls-sni=phone.${NAME}`],
    ]
  ) {
    await t.step(args.join(" "), async () => {
      const text = await kdig(...args, "kdig.example", "A");
      assert.match(text, /status: NOERROR/);
      assert.match(text, /HTTP session \(HTTP\/2-/);
    });
  }
  await t.step("a negative answer's age is that of its SOA", async () => {
    assert.match(await kdig(`+https=${NAME}/dns-query`, "health.svc.test", "TXT"), /SOA/);
  });
  doh.service.assertCalm();
});

Deno.test("with require_client_id, who names no known client over HTTPS is refused", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("kdig"),
}, async (t) => {
  await using doh = await Doh.start({ require_client_id: true });
  const { listen } = await doh.service.logged("serving the API");
  const spec = { name: "Phone", addresses: [], ids: ["phone"], group: "gr_0000000000000000" };
  const created = await fetch(`http://${(listen as string[])[0]}/api/v1/clients`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(spec),
  });
  assert.equal(created.status, 201, await created.text());
  const cases = [
    ["/dns-query", NAME, "REFUSED"],
    ["/dns-query/stranger", NAME, "REFUSED"],
    ["/dns-query/phone", NAME, "NOERROR"],
    ["/dns-query/Phone", `other.${NAME}`, "NOERROR"],
    ["/dns-query", `phone.${NAME}`, "NOERROR"],
    ["/dns-query/stranger", `phone.${NAME}`, "REFUSED"],
  ] as const;
  for (const [path, serverName, want] of cases) {
    await t.step(`${path} at ${serverName}: ${want}`, async () => {
      const { stdout } = await runProgram(
        "kdig",
        ...["@127.0.0.1", "-p", String(doh.address.port), "+timeout=20", "+retry=0"],
        ...[`+tls-ca=${doh.ca}`, `+tls-hostname=${serverName}`, `+tls-sni=${serverName}`],
        ...[`+https=${NAME}${path}`, "+padding", "client.example", "A"],
      );
      assert.match(stdout, new RegExp(`status: ${want}`), stdout);
      if (want === "NOERROR") assert.match(stdout, /Received 468 B/, stdout);
    });
  }
  doh.service.assertCalm();
});

Deno.test("h2load is answered, many streams at a time", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("h2load"),
}, async () => {
  await using doh = await Doh.start();
  await Deno.writeFile(`${doh.directory}/query`, ask("load.example"));
  for (const args of [["-m", "100"], ["-m", "1", "--h1"], ["-m", "32", "-t", "1"]]) {
    const { stdout } = await runProgram(
      "h2load",
      ...["-n", "3000", "-c", "3", ...args, "-H", `content-type: ${DNS_MESSAGE}`],
      ...["-d", `${doh.directory}/query`, `https://127.0.0.1:${doh.address.port}/dns-query`],
    );
    assert.match(stdout, /status codes: 3000 2xx, 0 3xx, 0 4xx, 0 5xx/, stdout);
  }
  doh.service.assertCalm();
});

Deno.test("svc run answers over HTTPS without the C library", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("curl"),
}, async () => {
  await using doh = await Doh.start({ odoh: true }, { without: ["--allow-ffi"] });
  const query = encodeBase64url(ask("portable.example"));
  const { status, body } = await doh.curl(["--http2"], `${doh.url()}?dns=${query}`);
  assert.deepEqual([status, decode(body).rcode], [200, Rcode.NoError]);
  assert.equal((await doh.curl([], doh.url("/.well-known/odohconfigs"))).status, 200);
});

Deno.test("queries that wait over HTTP/2 come back out of order", {
  permissions: PERMISSIONS,
}, async () => {
  await using doh = await Doh.start();
  /** Questions for names that start with `slow`, by name; retransmissions wait with the first. */
  const held = new Map<string, ReturnType<typeof Promise.withResolvers<void>>>();
  doh.upstream.script = async (query) => {
    const name = query.message.questions[0].name.toLowerCase(); // Its case is drawn by chance.
    if (name.startsWith("slow")) {
      const waiting = held.get(name) ?? Promise.withResolvers<void>();
      held.set(name, waiting);
      await waiting.promise;
    }
    return address(query);
  };
  const socket = await doh.tls(["h2"]);
  const session = connect2(`https://${NAME}`, { createConnection: () => socket });
  const order: string[] = [];
  const post = (name: string) =>
    new Promise<void>((resolve, reject) => {
      const stream = session.request({
        ":method": "POST",
        ":path": "/dns-query",
        "content-type": DNS_MESSAGE,
      });
      const parts: Buffer[] = [];
      stream.on("data", (part: Buffer) => parts.push(part));
      stream.on("error", reject);
      stream.on("end", () => {
        order.push(`${name} ${decode(Buffer.concat(parts)).answers.length}`);
        resolve();
      });
      stream.end(Buffer.from(ask(name)));
    });
  const slow = post("slow.example");
  await until("the slow one is asked", () => held.has("slow.example"));
  await Promise.all([post("fast1.example"), post("fast2.example")]);
  held.get("slow.example")!.resolve();
  await slow;
  assert.deepEqual(order.map((line) => line.split(" ")[1]), ["1", "1", "1"]);
  assert.match(order[2], /^slow/);
  // The end of the service waits for what was asked.
  const last = post("slow2.example");
  await until("the last one is asked", () => held.has("slow2.example"));
  doh.service.kill("SIGTERM");
  setTimeout(() => held.get("slow2.example")!.resolve(), 200);
  await last;
  assert.equal(order.length, 4);
  assert.equal((await doh.service.ended).code, 0);
  session.destroy();
});

/** Everything a connection says until it is closed. */
async function drained(socket: TLSSocket): Promise<string> {
  let text = "";
  let closed = false;
  socket.on("data", (part: Buffer) => text += part.toString("latin1"));
  socket.on("error", () => {}); // Resets are one way to be cut off.
  socket.on("close", () => closed = true);
  await until("the service closes", () => closed);
  return text;
}

Deno.test("who abuses HTTPS is cut off, and others are answered", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("curl"),
}, async (t) => {
  await using doh = await Doh.start();
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  const frame = (type: number, flags: number, id: number, payload: Uint8Array) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(id, 5);
    return Buffer.concat([head, payload]);
  };
  const none = new Uint8Array(0);
  const floods: readonly (readonly [string, Buffer])[] = [
    ["PING", Buffer.concat(Array(9_000).fill(frame(6, 0, 0, new Uint8Array(8))))],
    ["SETTINGS", Buffer.concat(Array(9_000).fill(frame(4, 0, 0, none)))],
    [
      "CONTINUATION",
      Buffer.concat([
        frame(1, 1, 1, none),
        ...Array(1_000).fill(frame(9, 0, 1, none)),
      ]),
    ],
    ["a frame of 16 MB", frame(0, 0, 0, none).fill(0xff, 0, 3)],
    ["no HTTP/2", Buffer.from("\x16\x03\x01 nonsense".repeat(100))],
  ];
  const before = await doh.metric("svc_https_rejected_total");
  for (const [name, bytes] of floods) {
    await t.step(name, async () => {
      const socket = await doh.tls(["h2"]);
      const text = drained(socket);
      socket.write(preface);
      if (name !== "no HTTP/2") socket.write(frame(4, 0, 0, none));
      socket.write(bytes);
      await text;
      const { status } = await doh.curl(
        [],
        `${doh.url()}?dns=${encodeBase64url(ask("next.example"))}`,
      );
      assert.equal(status, 200);
    });
  }
  await t.step("rapid resets", async () => {
    doh.upstream.script = () => new Promise(() => {}); // Nothing comes back.
    const socket = await doh.tls(["h2"]);
    const text = drained(socket);
    socket.write(Buffer.concat([preface, frame(4, 0, 0, none)]));
    for (let id = 1; id < 20_000 && !socket.destroyed; id += 2) {
      const query = encodeBase64url(ask(`r${id}.example`));
      const path = Buffer.from(`/dns-query?dns=${query}`);
      const block = Buffer.concat([Buffer.of(0x82, 0x87, 0x04, path.length), path]);
      socket.write(Buffer.concat([frame(1, 5, id, block), frame(3, 0, id, new Uint8Array(4))]));
    }
    await text;
    const asked = new Set(doh.upstream.seen.map(({ name }) => name.toLowerCase())).size;
    assert.ok(asked <= 4 * REQUESTS_MAX, `${asked} reached the upstream`);
    doh.upstream.script = (query) => address(query);
  });
  assert.ok(await doh.metric("svc_https_rejected_total") >= before + floods.length + 1);
  const query = encodeBase64url(ask("health.svc.test"));
  assert.equal((await doh.curl([], `${doh.url()}?dns=${query}`)).status, 200);
  doh.service.assertCalm();
});

Deno.test("svc run is a target for Oblivious DoH", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("curl"),
}, async (t) => {
  await using doh = await Doh.start({ odoh: true }, { workers: 2 });
  const { body: configs, fields } = await doh.curl([], doh.url("/.well-known/odohconfigs"));
  assert.match(fields["cache-control"], /^max-age=\d+$/);
  const type = ["-H", "content-type: application/oblivious-dns-message"];
  // More connections than isolates: both know the same keys.
  const nameOf = (i: number) => `oblivious${i}.example`;
  for (let i = 0; i < 6; i++) {
    const again = await doh.curl([], doh.url("/.well-known/odohconfigs"));
    assert.deepEqual(again.body, configs);
    const { message, open } = await oblivious(configs, ask(nameOf(i), 9));
    const version = i % 2 === 0 ? "--http2" : "--http1.1";
    const response = await doh.curl([version, ...type], doh.url(), message);
    assert.deepEqual(
      [response.status, response.fields["content-type"], response.fields["cache-control"]],
      [200, "application/oblivious-dns-message", "no-store"],
      new TextDecoder().decode(response.body),
    );
    const opened = decode(await open(response.body));
    assert.deepEqual([opened.id, opened.rcode, opened.answers.length], [9, Rcode.NoError, 1]);
  }
  const names = doh.upstream.seen.map(({ name }) => name.toLowerCase());
  assert.deepEqual(new Set(names), new Set(Array.from({ length: 6 }, (_, i) => nameOf(i))));
  await t.step("400 for what can't be decrypted, 401 for another key", async () => {
    const { message } = await oblivious(configs, ask("changed.example"));
    const changed = message.slice();
    changed[changed.length - 1] ^= 1;
    assert.equal((await doh.curl(type, doh.url(), changed)).status, 400);
    const otherKey = message.slice();
    otherKey[5] ^= 1;
    assert.equal((await doh.curl(type, doh.url(), otherKey)).status, 401);
    assert.equal((await doh.curl(type, doh.url(), message.slice(0, 50))).status, 400);
    const { message: noQuery } = await oblivious(configs, new Uint8Array(3));
    assert.equal((await doh.curl(type, doh.url(), noQuery)).status, 400);
  });
  await t.step("counts", async () => {
    assert.equal(await doh.metric("svc_queries_total", 'protocol="odoh"'), 6);
  });
  await t.step("the query log has the protocol", async () => {
    const { entries } = await (await Api.of(doh.service)).call("GET", "querylog?name=oblivious0");
    assert.deepEqual([entries.length, entries[0].protocol], [1, "odoh"]);
  });
  doh.service.assertCalm();
});
