// Goal: a device can load, read and trust a profile, whatever names are in it. Method: openssl makes
// the keys and verifies what is signed; the text inside is compared with what was not signed.
import assert from "node:assert/strict";
import { Profiles, type ProfilesOptions } from "../../src/node/profiles.ts";
import { hasProgram, OwnDirectory, PERMISSIONS, runProgram } from "./harness.ts";

const NOW_MS = Date.UTC(2026, 0, 2);
const HAS_OPENSSL = hasProgram("openssl");

function profiles(over: Partial<ProfilesOptions> = {}) {
  let tokens = 0;
  const time = { nowMs: NOW_MS };
  const made = new Profiles({
    clock: { nowMs: () => time.nowMs },
    randomHex: (lengthBytes) => (++tokens).toString(16).padStart(2 * lengthBytes, "0"),
    publicUrl: "https://dns.example",
    serverName: "dns.example",
    dohPorts: [8443],
    dotPorts: [853],
    identity: () => null,
    ...over,
  });
  const load = (url: string) => made.read(url.split("/").at(-1)!);
  const text = (url: string) => new TextDecoder().decode(load(url) ?? new Uint8Array());
  return { made, load, text, time };
}

Deno.test("Profiles.make() writes what Apple's devices read", { permissions: "none" }, () => {
  const { made, text } = profiles();
  const doh = made.make({ client_id: "tablet", protocol: "doh" });
  assert.match(doh.url, /^https:\/\/dns\.example\/api\/v1\/profiles\/[0-9a-f]{32}$/);
  assert.equal(doh.signed, false);
  assert.match(text(doh.url), /<key>DNSProtocol<\/key><string>HTTPS<\/string>/);
  const url = "https://dns.example:8443/dns-query/tablet";
  assert.ok(text(doh.url).includes(`<key>ServerURL</key><string>${url}</string>`));
  const dot = text(made.make({ protocol: "dot", client_id: "tablet" }).url);
  assert.match(dot, /<key>ServerName<\/key><string>tablet\.dns\.example<\/string>/);
  assert.match(dot, /com\.apple\.dnsSettings\.managed/);
  const hostile = profiles({ serverName: "a<b>&\"'\u0000\u001b.example" });
  const escaped = hostile.text(hostile.made.make({ protocol: "doh" }).url);
  assert.ok(escaped.includes("a&lt;b&gt;&amp;&quot;&apos;\ufffd\ufffd.example"));
  assert.ok(!escaped.includes("<b>"));
});

Deno.test("Profiles are open for an hour, and few at a time", { permissions: "none" }, () => {
  const { made, load, time } = profiles();
  const first = made.make({ protocol: "doh" });
  time.nowMs = Date.parse(first.expires_at) - 1;
  assert.ok(load(first.url) !== null);
  time.nowMs++;
  assert.equal(load(first.url), null);
  assert.equal(made.read("x"), null);
  const urls = Array.from({ length: 65 }, () => made.make({ protocol: "doh" }).url);
  assert.equal(load(urls[0]), null, "the oldest made room");
  assert.ok(load(urls[1]) !== null && load(urls[64]) !== null);
});

Deno.test(
  "Profiles.make() refuses what no device could connect by",
  { permissions: "none" },
  () => {
    const rows = [
      [{ serverName: null }, "doh", /server_name/],
      [{ dohPorts: [] }, "doh", /server\.tls\.doh/],
      [{ dotPorts: [8853] }, "dot", /port 853 only/],
    ] as const;
    for (const [over, protocol, want] of rows) {
      assert.throws(() => profiles(over).made.make({ protocol }), {
        code: "conflict",
        message: want,
      });
    }
  },
);

Deno.test({
  name: "a profile is signed by RSA and ECDSA, and goes unsigned with another key",
  permissions: PERMISSIONS,
  ignore: !HAS_OPENSSL,
  fn: async (t) => {
    await using own = await OwnDirectory.make();
    const at = (name: string) => `${own.path}/${name}`;
    const kinds = [
      ["rsa", ["rsa:2048"], true],
      ["ec", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], true],
      ["ed25519", ["ed25519"], false],
    ] as const;
    for (const [kind, newkey, isSigned] of kinds) {
      await t.step(kind, async () => {
        const [cert, key] = [at(`${kind}.crt`), at(`${kind}.key`)];
        await runProgram(
          "openssl",
          ...["req", "-x509", "-newkey", ...newkey, "-nodes", "-keyout", key, "-out", cert],
          ...["-days", "3", "-subj", "/CN=dns.example"],
        );
        const identity = { cert: await Deno.readFile(cert), key: await Deno.readFile(key) };
        const { made, load } = profiles({ identity: () => identity });
        const { url, signed } = made.make({ protocol: "doh", client_id: "tablet" });
        assert.equal(signed, isSigned);
        if (!isSigned) return;
        await Deno.writeFile(at("profile"), load(url)!);
        const { code, stderr } = await runProgram(
          "openssl",
          ...["cms", "-verify", "-inform", "DER", "-in", at("profile"), "-CAfile", cert],
          ...["-purpose", "any", "-binary", "-out", at("text")],
        );
        assert.equal(code, 0, stderr);
        const plain = profiles();
        const want = plain.text(plain.made.make({ protocol: "doh", client_id: "tablet" }).url);
        assert.equal(await Deno.readTextFile(at("text")), want);
      });
    }
  },
});
