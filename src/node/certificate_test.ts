import assert from "node:assert/strict";
import { type IssueOptions, makeAuthority, writePair } from "../../tests/e2e/certificates.ts";
import {
  API_CERTIFICATE,
  type CertificatePlace,
  DNS_CERTIFICATE,
  ServerCertificate,
} from "./certificate.ts";

const files = { permissions: { read: true, write: true } } as const;
const DAY_MS = 24 * 60 * 60 * 1_000;
const DOMAIN = "dns.svc.test";
const AUTHORITY = await makeAuthority();
const NOW_MS = Date.now();

/** A folder with a certificate, and a clock. */
class Bench {
  nowMs = NOW_MS;
  readonly clock = { nowMs: () => this.nowMs };

  constructor(readonly directory: string) {}

  /** Writes a certificate, and a key that is its own unless another is given. */
  async write(options: IssueOptions = {}, key?: string): Promise<void> {
    const issued = await AUTHORITY.issue({ names: [DOMAIN], ...options });
    await writePair(this.directory, "server", { ...issued, key: key ?? issued.key });
  }

  async open(
    place: CertificatePlace = DNS_CERTIFICATE,
    serverName: string | null = DOMAIN,
  ): Promise<ServerCertificate> {
    const certFile = `${this.directory}/server.crt`;
    const keyFile = `${this.directory}/server.key`;
    const opened = await ServerCertificate.open(
      { place, files: { certFile, keyFile }, serverName },
      this.clock,
    );
    assert.ok(opened !== null);
    return opened;
  }
}

async function withBench(use: (bench: Bench) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "svc-certificate-" });
  try {
    await use(new Bench(directory));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test(
  "ServerCertificate.open() reads a pair, or says what is wrong with it",
  files,
  async (t) => {
    const ago = new Date(NOW_MS - 2 * DAY_MS);
    const rows:
      readonly (readonly [string, (bench: Bench) => Promise<void>, boolean, RegExp | null])[] = [
        ["a good one", (bench) => bench.write(), true, null],
        ["none", async () => {}, false, /server\.tls\.cert: .*server\.crt can't be read/],
        [
          "another's key",
          async (bench) => bench.write({}, (await AUTHORITY.issue({})).key),
          false,
          /server\.tls\.key: .* is not the key of .*encrypted listeners refuse every connection/,
        ],
        [
          "garbage for a key",
          (bench) => bench.write({}, "garbage"),
          false,
          /is no PEM private key/,
        ],
        [
          "expired",
          (bench) => bench.write({ notBefore: ago, notAfter: new Date(NOW_MS - DAY_MS) }),
          true,
          /expired at .*: renew it/,
        ],
        [
          "not yet valid",
          (bench) => bench.write({ notBefore: new Date(NOW_MS + DAY_MS) }),
          true,
          /is not valid before/,
        ],
        [
          "near its end",
          (bench) => bench.write({ notAfter: new Date(NOW_MS + 3.5 * DAY_MS) }),
          true,
          /expires in 3 days, at/,
        ],
        [
          "another name",
          (bench) => bench.write({ names: ["other.example"] }),
          true,
          /covers neither dns\.svc\.test nor \*\.dns\.svc\.test/,
        ],
        ["names of clients alone", (bench) => bench.write({ names: [`*.${DOMAIN}`] }), true, null],
      ];
    for (const [name, write, isUsed, problem] of rows) {
      await t.step(name, () =>
        withBench(async (bench) => {
          await write(bench);
          const opened = await bench.open();
          assert.equal(opened.identity !== null, isUsed);
          if (problem === null) {
            assert.deepEqual(opened.problems, []);
          } else {
            assert.equal(opened.problems.length, 1);
            assert.match(opened.problems[0], problem);
            assert.doesNotMatch(opened.problems[0], /PRIVATE KEY|\n/);
          }
        }));
    }
  },
);

Deno.test(
  "ServerCertificate.renew() keeps the former one unless the new one is good",
  files,
  () =>
    withBench(async (bench) => {
      await bench.write();
      const opened = await bench.open();
      const first = opened.identity;
      await bench.write({}, "garbage");
      await assert.rejects(opened.renew(), { message: /is no PEM private key/ });
      assert.equal(opened.identity, first);
      assert.match(opened.problems[0], /the former certificate is still shown: mend it and send/);
      await bench.write({ notAfter: new Date(NOW_MS - 1), notBefore: new Date(NOW_MS - DAY_MS) });
      await assert.rejects(opened.renew(), { message: /expired at/ });
      assert.equal(opened.identity, first);
      await bench.write();
      const second = await opened.renew();
      assert.notDeepEqual(second.cert, first?.cert);
      assert.deepEqual([opened.identity, opened.problems], [second, []]);
    }),
);

Deno.test(
  "ServerCertificate.problems tells of the end before it comes",
  files,
  () =>
    withBench(async (bench) => {
      await bench.write();
      const opened = await bench.open();
      const found: string[] = [];
      for (const day of [0, 75, 77.5, 88.5, 89.5, 90.5]) {
        bench.nowMs = NOW_MS + day * DAY_MS;
        found.push(/expires in \d+ days?|expired/.exec(opened.problems.join())?.[0] ?? "nothing");
      }
      assert.deepEqual(found, [
        ...["nothing", "nothing", "expires in 12 days", "expires in 1 day", "expires in 0 days"],
        "expired",
      ]);
    }),
);

Deno.test(
  "ServerCertificate names the keys of the API, whose name is not checked",
  files,
  () =>
    withBench(async (bench) => {
      const problemsOf = async () => (await bench.open(API_CERTIFICATE, null)).problems.join();
      assert.match(
        await problemsOf(),
        /^api\.tls_cert: .*server\.crt can't be read.*; the API is not served: mend it and start svc again$/,
      );
      await bench.write({}, (await AUTHORITY.issue({})).key);
      assert.match(await problemsOf(), /^api\.tls_key: .* is not the key of/);
      await bench.write({ names: ["other.example"] });
      assert.equal(await problemsOf(), "");
      bench.nowMs += 77.5 * DAY_MS;
      assert.match(await problemsOf(), /^api\.tls_cert: the certificate expires in 12 days, at/);
      bench.nowMs += 20 * DAY_MS;
      assert.match(await problemsOf(), /^api\.tls_cert: .*server\.crt expired at/);
    }),
);

Deno.test(
  "ServerCertificate.renewFor() has a good one shown, and no other",
  files,
  () =>
    withBench(async (bench) => {
      await bench.write();
      const opened = await bench.open(API_CERTIFICATE, null);
      const shown: (typeof opened.identity)[] = [];
      await bench.write({}, "garbage");
      await opened.renewFor((identity) => shown.push(identity));
      assert.equal(shown.length, 0);
      assert.match(opened.problems[0], /^api\.tls_key: .* the former certificate is still shown/);
      await bench.write();
      await opened.renewFor((identity) => shown.push(identity));
      assert.deepEqual([shown, opened.problems], [[opened.identity], []]);
    }),
);

Deno.test(
  "ServerCertificate.open() is null where no certificate is configured",
  files,
  async () => {
    const clock = { nowMs: () => NOW_MS };
    const none = { place: API_CERTIFICATE, files: null, serverName: null };
    assert.equal(await ServerCertificate.open(none, clock), null);
  },
);
