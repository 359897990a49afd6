// Goal: a browser with secure DNS set to the service finds what only the service knows and loads
// nothing from a blocked name. Method: headless Chromium with a profile of its own that allows no
// other way to resolve, a web server on a loopback address, and a scripted upstream that would send
// the blocked name to that server as well.

import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import { hasProgram, OwnDirectory, PERMISSIONS, Service } from "./harness.ts";

const LOCAL = "printer.home.example";
const PASSED = "www.page.example";
const BLOCKED = "ads.page.example";
/** Where the pages are: not 127.0.0.1, which is where a connection to 0.0.0.0 ends up on Linux. */
const WEB_ADDRESS = "127.0.0.2";
/** Longest run of the browser for one page. */
const BROWSER_MS_MAX = 60_000;
/** Features that ask for names, pages or updates of their own, or want TLS of every page. */
const FEATURES_OFF = "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,OptimizationHints,Translate";

/** Serves one page to any name, and notes by which it was asked. */
class Pages {
  readonly asked: string[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor() {
    this.#server = Deno.serve({ hostname: WEB_ADDRESS, port: 0, onListen: () => {} }, (request) => {
      const { hostname } = new URL(request.url);
      this.asked.push(hostname);
      return new Response(`<!doctype html><title>page</title><p>page of ${hostname}</p>`, {
        headers: { "content-type": "text/html" },
      });
    });
  }

  url(name: string): string {
    return `http://${name}:${this.#server.addr.port}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** Chromium as it would run at home, in a new profile each time. */
class Browser {
  /** `keyHash` is of the service's public key, whose authority the browser does not know. */
  constructor(
    private readonly directory: string,
    private readonly template: string,
    private readonly keyHash: string,
  ) {}

  /** Loads a page; the document that came of it, an error page of the browser included. */
  async load(url: string): Promise<string> {
    const profile = await Deno.makeTempDir({ dir: this.directory, prefix: "profile-" });
    const dns = { mode: "secure", templates: this.template };
    await Deno.writeTextFile(`${profile}/Local State`, JSON.stringify({ dns_over_https: dns }));
    const child = new Deno.Command("chromium", {
      args: [
        "--headless=new",
        "--no-sandbox", // As root there is none.
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--no-proxy-server",
        `--disable-features=${FEATURES_OFF}`,
        `--user-data-dir=${profile}`,
        `--ignore-certificate-errors-spki-list=${this.keyHash}`,
        "--virtual-time-budget=10000",
        "--dump-dom",
        url,
      ],
      env: { HOME: profile, XDG_CONFIG_HOME: profile, XDG_CACHE_HOME: profile },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      signal: AbortSignal.timeout(BROWSER_MS_MAX),
    }).spawn();
    const { code, stdout, stderr } = await child.output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
    return new TextDecoder().decode(stdout);
  }
}

/** What Chromium calls a key: the SHA-256 of its SPKI, in base64. */
function keyHash(cert: string): string {
  const spki = new X509Certificate(cert).publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest("base64");
}

Deno.test({
  name: "Chromium with secure DNS loads what the service answers and nothing that it blocks",
  ignore: !hasProgram("chromium"),
  permissions: PERMISSIONS,
  fn: async (t) => {
    await using own = await OwnDirectory.make();
    const directory = own.path;
    const issued = await (await makeAuthority()).issue({ ips: ["127.0.0.1"] });
    await writePair(directory, "server", issued);
    await using pages = new Pages();
    // Whatever is asked, the blocked name included, is on the web server.
    await using upstream = await FakeUpstream.start((query) => address(query, WEB_ADDRESS));
    await using service = await Service.start({
      directory,
      config: {
        upstream: [{ address: upstream.text }],
        filter: { rules: [`||${BLOCKED}^`] },
        security: { rebinding_protection: false },
        "server.tls": { cert: "server.crt", key: "server.key", doh: ["127.0.0.1:0"] },
      },
    });
    const api = await Api.of(service);
    await api.create("records", { name: LOCAL, type: "A", value: WEB_ADDRESS });
    const { port } = service.encrypted.doh[0];
    const template = `https://127.0.0.1:${port}/dns-query{?dns}`;
    const browser = new Browser(directory, template, keyHash(issued.cert));

    await t.step("a name of the operator's own", async () => {
      assert.match(await browser.load(pages.url(LOCAL)), new RegExp(`page of ${LOCAL}`));
      assert.ok(!upstream.seen.some(({ name }) => name.toLowerCase() === LOCAL));
    });
    await t.step("a name that upstream answers", async () => {
      assert.match(await browser.load(pages.url(PASSED)), new RegExp(`page of ${PASSED}`));
    });
    await t.step("a blocked name", async () => {
      assert.doesNotMatch(await browser.load(pages.url(BLOCKED)), /page of/);
      assert.ok(!upstream.seen.some(({ name }) => name.toLowerCase() === BLOCKED));
    });
    assert.deepEqual([...new Set(pages.asked)].sort(), [LOCAL, PASSED].sort());
    service.assertCalm();
  },
});
