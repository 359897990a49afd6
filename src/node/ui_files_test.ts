import assert from "node:assert/strict";
import { readUiFiles } from "./ui_files.ts";

const DIGESTS = { script: "c2NyaXB0", style: "c3R5bGU=" };

function packed(pages: readonly string[]): Uint8Array<ArrayBuffer> {
  const files = [
    { path: "/index.html", type: "text/html", hash: "a", offset: 0, length: 3 },
    { path: "/assets/main-1.js", type: "text/javascript", hash: "b", offset: 3, length: 4 },
  ];
  const index = JSON.stringify({ shell: "/index.html", digests: DIGESTS, pages, files });
  return new TextEncoder().encode(`${index}\nonetwo\n`);
}

Deno.test("readUiFiles() finds each file behind the index", { permissions: "none" }, () => {
  const files = readUiFiles(packed(["/"]));
  const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);
  assert.equal(text(files.shell.gzip), "one");
  assert.equal(text(files.asset("/assets/main-1.js")?.gzip), "two\n");
  assert.equal(files.asset("/assets/other.js"), undefined);
  assert.deepEqual(files.digests, DIGESTS);
});

Deno.test("readUiFiles() knows which paths are pages", { permissions: "none" }, () => {
  const { hasPage } = readUiFiles(packed(["/", "/log", "/groups/:id"]));
  const rows: readonly (readonly [string, boolean])[] = [
    ["/", true],
    ["/log", true],
    ["/log/", true],
    ["/logs", false],
    ["/groups/gr_0000000000000000", true],
    ["/groups/a/b", false],
    ["/groups", false],
  ];
  for (const [path, want] of rows) assert.equal(hasPage(path), want, path);
});

Deno.test("readUiFiles() refuses a file without its shell", { permissions: "none" }, () => {
  const bytes = new TextEncoder().encode('{"shell":"/index.html","pages":[],"files":[]}\n');
  assert.throws(() => readUiFiles(bytes), /index\.html/);
});
