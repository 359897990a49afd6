import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { createApi } from "./app.ts";
import { fakeDeps } from "./fakes.ts";
import { serveUi, type UiFile, type UiFiles } from "./ui_files.ts";

const SCRIPT = "export const page = 1;\n".repeat(100);

function file(type: string, text: string): UiFile {
  return { type, hash: "0123456789abcdef", gzip: new Uint8Array(gzipSync(text)) };
}

const DIGESTS = { script: "c2NyaXB0", style: "c3R5bGU=" };
const FILES: UiFiles = {
  digests: DIGESTS,
  shell: file("text/html; charset=utf-8", "<!doctype html>"),
  asset: (path) => path === "/assets/main-1.js" ? file("text/javascript", SCRIPT) : undefined,
  hasPage: (path) => path === "/" || path === "/log",
};
const GZIP = { "accept-encoding": "br, gzip" };

function ask(target: string, headers: Record<string, string> = GZIP, method = "GET") {
  return serveUi(FILES, new Request(`http://svc.example${target}`, { headers, method }));
}

Deno.test("serveUi() answers pages with the shell, and leaves others theirs", {
  permissions: "none",
}, () => {
  const rows: readonly (readonly [string, number | null])[] = [
    ["/", 200],
    ["/log?outcome=blocked", 200],
    ["/no-such-page", 404],
    ["/apiary", 404],
    ["/assets/main-1.js", 200],
    ["/assets/main-2.js", null],
    ["/api", null],
    ["/api/v1/status", null],
    ["/metrics", null],
  ];
  for (const [target, want] of rows) assert.equal(ask(target)?.status ?? null, want, target);
  assert.equal(ask("/", GZIP, "POST"), null);
});

Deno.test("serveUi() has pages asked for again and assets kept", { permissions: "none" }, () => {
  assert.equal(ask("/")?.headers.get("cache-control"), "no-cache");
  const asset = ask("/assets/main-1.js")!;
  assert.equal(asset.headers.get("cache-control"), "public, max-age=31536000, immutable");
  const tag = asset.headers.get("etag")!;
  assert.equal(ask("/assets/main-1.js", { ...GZIP, "if-none-match": tag })?.status, 304);
  assert.equal(ask("/assets/main-1.js", { "if-none-match": tag })?.status, 200, "other bytes");
  // What is not there must not be taken for the page that was.
  const shellTag = ask("/")!.headers.get("etag")!;
  assert.equal(ask("/no-such-page", { ...GZIP, "if-none-match": shellTag })?.status, 404);
});

Deno.test("serveUi() sends gzip to who takes it, and the plain file to others", {
  permissions: "none",
}, async () => {
  const zipped = ask("/assets/main-1.js")!;
  assert.equal(zipped.headers.get("content-encoding"), "gzip");
  assert.equal(zipped.headers.get("content-length"), String((await zipped.bytes()).length));
  for (const accepted of ["", "br", "gzip;q=0", "gzip; q=0.0"]) {
    const plain = ask("/assets/main-1.js", { "accept-encoding": accepted })!;
    assert.equal(plain.headers.get("content-encoding"), null, accepted);
    assert.equal(await plain.text(), SCRIPT, accepted);
  }
});

Deno.test("serveUi() lets a page run its own scripts and nothing else", {
  permissions: "none",
}, () => {
  const policy = ask("/")!.headers.get("content-security-policy")!;
  const parts = new Map(
    policy.split("; ").map((part): [string, string] => {
      const space = part.indexOf(" ");
      return [part.slice(0, space), part.slice(space + 1)];
    }),
  );
  assert.equal(parts.get("default-src"), "'none'");
  // Of what lies inside the page, that which was built into it alone.
  assert.equal(parts.get("script-src"), `'self' 'sha256-${DIGESTS.script}'`);
  assert.equal(parts.get("style-src"), `'self' 'sha256-${DIGESTS.style}'`);
  assert.match(policy, /require-trusted-types-for 'script'; trusted-types 'none'$/);
  assert.doesNotMatch(policy, /unsafe|\bhttps?:(?!\/\/\*\.leak\.svc\.test)/);
});

Deno.test("the API serves the dashboard where there is one, and 404 where there is none", {
  permissions: "none",
}, async () => {
  const request = () => new Request("http://svc.example/log", { headers: GZIP });
  const withUi = createApi(fakeDeps({ ui: FILES }).deps);
  // To whoever asks: the page says why the API refuses them.
  assert.equal((await withUi(request(), "192.0.2.1")).status, 200);
  const without = createApi(fakeDeps().deps);
  const local = new Request("http://127.0.0.1/log", { headers: { host: "127.0.0.1" } });
  assert.equal((await without(local, "127.0.0.1")).status, 404);
});
