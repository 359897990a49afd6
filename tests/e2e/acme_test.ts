// Goal: a service gets its certificate by itself, shows it everywhere without a restart, and tells of
// it. Method: the program before an authority of the test's own over HTTPS; and, where pebble is on
// PATH or SVC_PEBBLE names it, before that as well.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { createServer } from "node:https";
import { connect as connectTls } from "node:tls";
import { FakeCa, refusal } from "../../src/acme/fakes.ts";
import { type Authority, makeAuthority, writePair } from "./certificates.ts";
import {
  freePort,
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  until,
} from "./harness.ts";

const DOMAIN = "dns.example";
const permissions = PERMISSIONS;
const HMAC_KEY = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/** The authority with its own listener. */
async function startCa(
  authority: Authority,
  lookUp: ConstructorParameters<typeof FakeCa>[0]["lookUp"],
): Promise<{ readonly ca: FakeCa; readonly port: number } & AsyncDisposable> {
  const { cert, key } = await authority.issue({ names: ["localhost"] });
  const server = createServer({ cert, key }, (request, response) => {
    let body = "";
    request.on("data", (piece: Uint8Array) => void (body += new TextDecoder().decode(piece)));
    request.on("end", async () => {
      const { method = "", url = "", headers } = request;
      const answer = await ca.answer(method, url, body, headers["content-type"] ?? "");
      response.writeHead(answer.status, answer.headers).end(answer.body ?? "");
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as { port: number };
  const ca = new FakeCa({ origin: `https://localhost:${port}`, nowMs: () => Date.now(), lookUp });
  return {
    ca,
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      await promise;
    },
  };
}

/** Who has signed what a listener shows. */
function shownAt(port: number): Promise<X509Certificate> {
  const { promise, resolve, reject } = Promise.withResolvers<X509Certificate>();
  const socket = connectTls({
    port,
    host: "127.0.0.1",
    servername: DOMAIN,
    rejectUnauthorized: false,
  });
  socket.on("error", reject);
  socket.on("secureConnect", () => {
    resolve(new X509Certificate(socket.getPeerCertificate(true).raw));
    socket.destroy();
  });
  return promise;
}

async function getRaw(port: number, request: string): Promise<string> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  await conn.write(new TextEncoder().encode(request));
  let text = "";
  const bytes = new Uint8Array(4_096);
  for (let length; (length = await conn.read(bytes)) !== null;) {
    text += new TextDecoder().decode(bytes.subarray(0, length));
  }
  return text;
}

Deno.test(
  "a service gets its certificate over HTTP, and shows it at once",
  { permissions },
  async (t) => {
    await using stack = new AsyncDisposableStack();
    const { path: directory } = stack.use(await OwnDirectory.make("svc-acme-"));
    const authority = await makeAuthority();
    await Deno.writeTextFile(`${directory}/ca.crt`, authority.cert);
    const [http, api] = [freePort(), freePort()];
    const proofOf = async (token: string) => {
      const answer = await getRaw(
        http,
        `GET /.well-known/acme-challenge/${token} HTTP/1.1\r\nHost: ${DOMAIN}\r\n\r\n`,
      );
      return answer.startsWith("HTTP/1.1 200 ") ? answer.replace(/^[^]*?\r\n\r\n/, "") : null;
    };
    const { ca, port } = stack.use(
      await startCa(authority, (_kind, _name, token) => proofOf(token)),
    );
    // What comes first is no certificate.
    ca.trouble = (path) => path === "/directory" ? refusal(503, "serverInternal", "later") : null;
    const config = {
      server: { listen: ["127.0.0.1:0"], workers: 1 },
      "server.tls": { dot: ["127.0.0.1:0"], server_name: DOMAIN },
      api: { listen: [`127.0.0.1:${api}`] },
      acme: {
        ...{ directory: `https://localhost:${port}/directory`, agree_tos: true, domains: [DOMAIN] },
        ...{
          listen: [`127.0.0.1:${http}`],
          ca_file: "ca.crt",
          api: true,
          email: "anna@example.org",
        },
      },
    };
    const service = stack.use(await Service.start({ directory, config }));
    const dot = service.encrypted.dot[0].port;
    const status = async () => {
      const { stdout } = await runProgram("curl", "-sk", `https://127.0.0.1:${api}/api/v1/status`);
      return JSON.parse(stdout);
    };

    await t.step("before there is one, it shows one of its own, and says so", async () => {
      await service.logged("no certificate is had");
      for (const port of [dot, api]) assert.equal((await shownAt(port)).issuer, `CN=${DOMAIN}`);
      const { acme, problems } = await status();
      assert.equal(acme.certificate, "stand_in");
      assert.match(
        problems.join(),
        /acme: no certificate for dns\.example is had: .*later.*tried again/,
      );
    });

    await t.step("once it is issued, every listener shows it", async (t) => {
      ca.trouble = () => null;
      // What waits for its time is done at a start, too, once that has come.
      const state = JSON.parse(await Deno.readTextFile(`${directory}/store/acme/state.json`));
      assert.equal((await service.stop()).code, 0);
      await Deno.writeTextFile(
        `${directory}/store/acme/state.json`,
        JSON.stringify({ ...state, nextAtMs: 0 }),
      );
      await using next = await Service.start({ directory, config });
      await next.logged("the authority has issued a certificate");
      const dot = next.encrypted.dot[0].port;
      await until(
        "the new certificate",
        async () =>
          (await shownAt(dot)).issuer === "CN=Fake authority" &&
          (await shownAt(api)).issuer === "CN=Fake authority",
      );
      const { acme, encrypted, problems } = await status();
      assert.deepEqual([acme.certificate, acme.error, acme.domains], ["issued", null, [DOMAIN]]);
      assert.equal(encrypted.not_after, acme.not_after);
      assert.doesNotMatch(problems.join(), /acme|certificate/);
      const { stdout: metrics } = await runProgram(
        "curl",
        "-sk",
        `https://127.0.0.1:${api}/metrics`,
      );
      assert.match(metrics, /^svc_acme_issued_total 1$/m);
      const [, endsAt] = /^svc_certificate_expiry_timestamp_seconds (\d+)/m.exec(metrics) ?? [];
      assert.equal(Number(endsAt) * 1_000, Date.parse(acme.not_after));

      for (const name of ["state.json", "certificate.pem"]) {
        const { mode } = await Deno.stat(`${directory}/store/acme/${name}`);
        assert.equal(mode! & 0o777, 0o600, name);
      }
      assert.doesNotMatch(next.transcript(), /PRIVATE KEY|"key"/);

      // Nobody finds anything else there, whatever is asked.
      const refused = await getRaw(http, "GET / HTTP/1.1\r\n\r\n");
      assert.match(refused, /^HTTP\/1\.1 404 /);
      for (
        const path of [
          "/.well-known/acme-challenge/",
          "/.well-known/acme-challenge/../../etc/passwd",
          "/.well-known/acme-challenge/..%2fstate.json",
          "/.well-known/acme-challenge/token-0-0-0123456789",
          "/.well-known/acme-challenge/__proto__",
          `/${"a".repeat(3_000)}`,
        ]
      ) {
        assert.equal(
          await getRaw(http, `GET ${path} HTTP/1.1\r\n\r\n`),
          refused,
          path.slice(0, 60),
        );
      }
      assert.equal(await getRaw(http, "POST / HTTP/1.1\r\n\r\n"), refused);
      assert.equal(await getRaw(http, "x".repeat(5_000)), refused);

      await t.step("the next program finds it, and nothing is ordered", async () => {
        const { orders } = ca;
        await next.upgrade();
        const answering = await next.logged("answering", {}, 2);
        const [address] = answering.dot as string[];
        assert.equal((await shownAt(Number(address.split(":")[1]))).issuer, "CN=Fake authority");
        assert.equal(await getRaw(http, "GET / HTTP/1.1\r\n\r\n"), refused);
        assert.equal(ca.orders, orders);
      });
    });
  },
);

Deno.test(
  "a service gets a wildcard over DNS, at an address of its own",
  { permissions },
  async () => {
    await using stack = new AsyncDisposableStack();
    const { path: directory } = stack.use(await OwnDirectory.make("svc-acme-"));
    const authority = await makeAuthority();
    await Deno.writeTextFile(`${directory}/ca.crt`, authority.cert);
    const dns = freePort();
    const zone = `_acme-challenge.${DOMAIN}`;
    const seen: string[] = [];
    const dig = async (...question: string[]) => {
      const at = ["@127.0.0.1", "-p", `${dns}`, "+norec", "+timeout=5", ...question];
      return (await runProgram("dig", ...at)).stdout;
    };
    const { port } = stack.use(
      await startCa(authority, async (kind, name) => {
        assert.equal(kind, "dns-01");
        for (const way of ["+notcp", "+tcp"]) {
          seen.push(await dig(way, `_acme-challenge.${name}`, "TXT"));
        }
        return /\sTXT\s"(.*)"/.exec(seen.at(-1) ?? "")?.[1] ?? null;
      }),
    );
    const service = stack.use(
      await Service.start({
        directory,
        config: {
          "server.tls": { dot: ["127.0.0.1:0"] },
          acme: {
            ...{ directory: `https://localhost:${port}/directory`, agree_tos: true },
            ...{ domains: [DOMAIN, `*.${DOMAIN}`], challenge: "dns-01", ca_file: "ca.crt" },
            listen: [`127.0.0.1:${dns}`],
          },
        },
      }),
    );
    await service.logged("the authority has issued a certificate");
    assert.equal(seen.length, 4);
    for (const answer of seen) assert.match(answer, /status: NOERROR[^]*flags: qr aa;/);
    const dot = service.encrypted.dot[0].port;
    await until("the new certificate", async () => {
      return (await shownAt(dot)).subjectAltName === `DNS:${DOMAIN}, DNS:*.${DOMAIN}`;
    });
    // Afterwards there is nothing to see, and never anything else.
    assert.match(await dig(zone, "TXT"), /NOERROR[^]*ANSWER: 0[^]*SOA/);
    assert.match(await dig("health.svc.test", "A"), /REFUSED/);
    service.assertCalm();
  },
);

const PEBBLE = Deno.env.get("SVC_PEBBLE") ?? (hasProgram("pebble") ? "pebble" : null);

for (const challenge of ["http-01", "dns-01"]) {
  Deno.test({
    name: `a service gets its certificate of pebble by ${challenge}`,
    permissions,
    ignore: PEBBLE === null,
    fn: async () => {
      await using stack = new AsyncDisposableStack();
      const { path: directory } = stack.use(await OwnDirectory.make("svc-acme-"));
      const authority = await makeAuthority();
      await Deno.writeTextFile(`${directory}/ca.crt`, authority.cert);
      await writePair(directory, "pebble", await authority.issue({ names: ["localhost"] }));
      const [proofs, port, management] = [freePort(), freePort(), freePort()];
      const isHttp = challenge === "http-01";
      await Deno.writeTextFile(
        `${directory}/pebble.json`,
        JSON.stringify({
          pebble: {
            ...{ listenAddress: `127.0.0.1:${port}` },
            ...{ managementListenAddress: `127.0.0.1:${management}` },
            ...{ certificate: `${directory}/pebble.crt`, privateKey: `${directory}/pebble.key` },
            ...{ httpPort: isHttp ? proofs : 5_002, tlsPort: 5_001, ocspResponderURL: "" },
            externalAccountBindingRequired: true,
            externalAccountMACKeys: { "kid-1": HMAC_KEY },
            domainBlocklist: [],
            retryAfter: { authz: 1, order: 1 },
          },
        }),
      );
      await Deno.writeTextFile(`${directory}/hmac`, `${HMAC_KEY}\n`);
      // Of the names, "localhost" is found by whoever looks; what it looks in for TXT is the service.
      const dns = isHttp ? [] : ["-dnsserver", `127.0.0.1:${proofs}`];
      const pebble = new Deno.Command(PEBBLE ?? "", {
        args: ["-config", `${directory}/pebble.json`, ...dns],
        env: { PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "20" },
        ...{ stdin: "null", stdout: "null", stderr: "null" } as const,
      }).spawn();
      stack.defer(async () => {
        pebble.kill("SIGKILL");
        await pebble.status;
      });
      await until("pebble", async () => {
        return (await runProgram("curl", "-sk", `https://127.0.0.1:${port}/dir`)).code === 0;
      });
      const service = stack.use(
        await Service.start({
          directory,
          config: {
            "server.tls": { dot: ["127.0.0.1:0"] },
            acme: {
              ...{ directory: `https://localhost:${port}/dir`, agree_tos: true, challenge },
              ...{ domains: ["localhost"], ca_file: "ca.crt", listen: [`127.0.0.1:${proofs}`] },
              ...{ eab_kid: "kid-1", eab_key_file: "hmac", email: "anna@example.org" },
            },
          },
        }),
      );
      await service.logged("the authority has issued a certificate");
      const dot = service.encrypted.dot[0].port;
      await until("the new certificate", async () => /Pebble/.test((await shownAt(dot)).issuer));
      service.assertCalm();
    },
  });
}
