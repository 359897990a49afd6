// Goal: the tree is what its table says. Method: the imports of every file are read as text and held
// against the table of modules below, whose rows import from rows above them.
import assert from "node:assert/strict";
import { RELEASED_MS, VERSION } from "../src/version.ts";
import { SCOPES } from "../src/isolate/scopes.ts";
import { type Row, SHARED, TABLE, WIRED } from "./house.ts";

const ROOT = new URL("../", import.meta.url);
const reading: Pick<Deno.TestDefinition, "permissions"> = { permissions: { read: [ROOT] } };

/** Longest file, in lines; what is longer holds more than one idea. Tests are tables for the most. */
const LINES_MAX = { source: 500, others: 600 };
/** One table of cases, which is read from its top to its end. */
const LONG_TABLES = ["src/config/parse_test.ts"];

interface Import {
  /** As written. */
  readonly specifier: string;
  readonly typeOnly: boolean;
  /** Loaded when the line is reached, if ever. */
  readonly isDynamic: boolean;
}

interface SourceFile {
  /** From the root of the checkout. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
}

/** The name of a file's module, or "" of one that is in none. */
function moduleOf(path: string): string {
  return /^(?:src\/([^/]+)|(ui))\//.exec(path)?.slice(1).find((name) => name) ?? "";
}

/** The row of a file: its module's, or its own. */
function rowOf(path: string): Row | undefined {
  const name = moduleOf(path);
  return name === "" ? SHARED[path.replace(/^src\//, "")] : TABLE[name];
}

/** The files by which others come into a module. */
function entrancesOf(name: string): string[] {
  return ["mod.ts", ...TABLE[name].entrances ?? []].map((file) => `src/${name}/${file}`);
}

/** Tests, benchmarks, and what only these use: they may look into their own module. */
function isForTests(path: string): boolean {
  return /^tests\/|(_test|_bench|_child|\/fakes)\.ts$/.test(path);
}

/** The text without comments; what stands in quotes stays. */
function withoutComments(text: string): string {
  const token = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\/\*[^]*?\*\/|(?<![:\\"'`\w/])\/\/[^\n]*/g;
  return text.replace(token, (found) => found.startsWith("/") ? " " : found);
}

function readImports(text: string): Import[] {
  const statement = /^(import|export)\s+(type\s)?[^;"]*?from\s+"([^"]+)"/gm;
  const imports = Array.from(withoutComments(text).matchAll(statement), (match) => ({
    specifier: match[3],
    typeOnly: match[2] !== undefined,
    isDynamic: false,
  }));
  for (const match of text.matchAll(/^import\s+"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)/gm)) {
    const isDynamic = match[1] === undefined;
    imports.push({ specifier: isDynamic ? match[2] : match[1], typeOnly: false, isDynamic });
  }
  return imports;
}

function* filesBelow(folder: string): Generator<SourceFile> {
  for (const { name, isDirectory } of Deno.readDirSync(new URL(folder, ROOT))) {
    if (isDirectory) yield* filesBelow(`${folder}${name}/`);
    else if (/\.tsx?$/.test(name)) {
      const path = folder + name;
      const text = Deno.readTextFileSync(new URL(path, ROOT));
      yield { path, text, imports: readImports(text) };
    }
  }
}

/** Files of the program: modules, and, where there is one, what runs in a browser. */
const PROGRAM = ["src/", "ui/"];

function readFiles(...folders: string[]): SourceFile[] {
  return folders.flatMap((folder) => [...filesBelow(folder)]).sort((a, b) =>
    a.path < b.path ? -1 : 1
  );
}

/** Where a relative import leads, from the root of the checkout. */
function target(from: string, specifier: string): string {
  const url = new URL(specifier, new URL(from, "file:///"));
  return url.pathname.slice(1);
}

/** Imports of other modules' files and of the shared ones: from where, of what. */
function crossings(files: readonly SourceFile[]) {
  return files.flatMap(({ path, imports }) =>
    imports.filter(({ specifier }) => specifier.startsWith(".")).map(({ specifier, typeOnly }) => {
      const to = target(path, specifier);
      return { path, to, from: moduleOf(path), module: moduleOf(to), typeOnly };
    }).filter(({ from, module }) => from !== module)
  );
}

Deno.test("readImports() sees every form and nothing in comments", { permissions: "none" }, () => {
  const text = [
    'import { a } from "./a.ts";',
    "import {",
    "  b,",
    '  type C, // from "./no.ts"',
    '} from "../b/mod.ts";',
    'import type { D } from "./d.ts";',
    'export * from "./e.ts";',
    'export type { F } from "./f.ts";',
    'import "./g.ts";',
    'const h = await import("./h.ts");',
    '// import { no } from "./no.ts";',
    '/* export * from "./no.ts"; */',
    'const url = "https://example/"; // from "./no.ts"',
  ].join("\n");
  assert.deepEqual(
    readImports(text).map(({ specifier, typeOnly, isDynamic }) =>
      specifier + (typeOnly ? " type" : "") + (isDynamic ? " later" : "")
    ),
    ["./a.ts", "../b/mod.ts", "./d.ts type", "./e.ts", "./f.ts type", "./g.ts", "./h.ts later"],
  );
});

Deno.test("the table's rows import from rows above them", { permissions: "none" }, () => {
  const names = Object.keys(TABLE);
  for (const [i, name] of names.entries()) {
    for (const imported of TABLE[name].imports) {
      assert.ok(names.slice(0, i).includes(imported), `${name}: ${imported}`);
    }
  }
});

Deno.test("a module imports what its row says, through an entrance", reading, () => {
  const files = readFiles(...PROGRAM);
  const modules = new Set(files.map(({ path }) => moduleOf(path)).filter((name) => name !== ""));
  for (const name of modules) assert.ok(Object.hasOwn(TABLE, name), `${name}/ has no row`);
  modules.delete("ui"); // Nothing imports it.
  for (const name of modules) {
    for (const entrance of entrancesOf(name)) {
      const seam = files.find(({ path }) => path === entrance);
      assert.ok(seam !== undefined, `${entrance} is missing`);
      assert.match(seam.text, /^\/\*\*[^]*?@module\s*\*\//, `${entrance} opens with its chapter`);
    }
  }
  const problems = crossings(files).flatMap(({ path, to, from, module, typeOnly }) => {
    if (to.startsWith("tests/")) return isForTests(path) ? [] : [`${path}: ${to} is for tests`];
    if (module === "") {
      return rowOf(to) !== undefined ? [] : [`${path}: ${to} is in no module`];
    }
    const seam = entrancesOf(module).includes(to);
    // A fake stands for a module's surroundings in the tests of whoever uses it.
    const fake = isForTests(path) && to.endsWith("/fakes.ts");
    if (!seam && !fake) return [`${path}: ${to} is behind a seam`];
    if (isForTests(path)) return [];
    const row = rowOf(path);
    if (row === undefined) return [`${path} has no row`];
    if (!row.imports.includes(module)) return [`${path}: ${from} does not import ${module}`];
    const isAllowed = typeOnly || row.types?.includes(module) !== true;
    return isAllowed ? [] : [`${path}: of ${module} it takes types alone`];
  });
  const inside = files.flatMap(({ path, imports }) =>
    imports.filter(({ specifier }) => specifier.endsWith("/fakes.ts") && !isForTests(path))
      .map(({ specifier }) => `${path}: ${specifier} is for tests`)
  );
  assert.deepEqual([...problems, ...inside], []);
});

Deno.test("modules import each other in no circle", reading, () => {
  const edges = new Map<string, Set<string>>();
  for (const { path, from, module } of crossings(readFiles(...PROGRAM))) {
    if (isForTests(path) || from === "" || module === "") continue;
    edges.set(from, (edges.get(from) ?? new Set()).add(module));
  }
  assert.ok(edges.size > 5);
  const visit = (name: string, way: readonly string[]): void => {
    assert.ok(!way.includes(name), [...way, name].join(" > "));
    for (const next of edges.get(name) ?? []) visit(next, [...way, name]);
  };
  for (const name of edges.keys()) visit(name, []);
});

/** Rooms of the resolver, and which of its others each may know. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  ask: [],
  flights: [],
  forward: ["ask", "flights"],
  recursive: ["ask", "flights"],
  validate: ["flights"],
};

Deno.test("rooms of the resolver know of each other what they may", reading, () => {
  const files = readFiles("src/resolver/").filter(({ path }) => !isForTests(path));
  const roomOf = (path: string) => /^src\/resolver\/(\w+)\//.exec(path)?.[1] ?? "";
  const rooms = new Set(files.map(({ path }) => roomOf(path)).filter((room) => room !== ""));
  assert.deepEqual([...rooms].sort(), Object.keys(ROOMS).sort());
  const problems = files.flatMap(({ path, imports }) => {
    const from = roomOf(path);
    return imports.map(({ specifier }) => target(path, specifier)).filter((to) => {
      const room = roomOf(to);
      if (room === "" || room === from) return false;
      const allowed = from === "" || ROOMS[from].includes(room);
      return !allowed || !to.endsWith("/mod.ts");
    }).map((to) => `${path}: ${to}`);
  });
  assert.deepEqual(problems, []);
});

/** What a module without a scope may not use: it is handed these as ports. */
const IO: readonly (readonly [string, RegExp])[] = [
  [
    "Deno",
    /\bDeno\.(?!build\b|errors\b|[A-Z])\w+|\bnew Deno\.(?!errors\b)|\bDeno\.[A-Z]\w*[.(]|\bDeno\.Command\b/,
  ],
  ["a Node module with I/O", /"node:(?!url"|path\/posix"|crypto"|util"|buffer")[^"]*"/],
  ["the network", /\b(fetch|WebSocket|EventSource)\(/],
  ["a worker", /\bnew (Worker|BroadcastChannel)\(/],
  ["the clock", /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(/],
  ["a timer", /\b(setTimeout|setInterval)\(/],
  ["chance", /\bMath\.random\b|\bgetRandomValues\(|\brandomUUID\(/],
  ["the console", /\bconsole\./],
];

/** Which I/O there is in a text. */
function ioIn(text: string): string[] {
  const code = withoutComments(text);
  return IO.filter(([, pattern]) => pattern.test(code)).map(([what]) => what);
}

Deno.test(
  "ioIn() finds every form, and takes no type or error for one",
  { permissions: "none" },
  () => {
    const rows: readonly (readonly [string, readonly string[]])[] = [
      ["Deno.readFileSync(path)", ["Deno"]],
      ["new Deno.Command(path)", ["Deno"]],
      ["const { Command } = Deno; Deno.Command", ["Deno"]],
      ["new Deno.QuicEndpoint()", ["Deno"]],
      ["new Deno.UnsafePointerView(pointer)", ["Deno"]],
      ["Deno.UnsafePointer.of(bytes)", ["Deno"]],
      ['import { connect } from "node:net";', ["a Node module with I/O"]],
      ["fetch(url)", ["the network"]],
      ["new Worker(url)", ["a worker"]],
      ["Date.now()", ["the clock"]],
      ["setTimeout(work, 1)", ["a timer"]],
      ["Math.random()", ["chance"]],
      ["console.log(1)", ["the console"]],
      ["const conn: Deno.Conn = given; type A = Deno.Addr | Deno.FsFile;", []],
      ["error instanceof Deno.errors.NotFound || Deno.build.os", []],
      ["throw new Deno.errors.NotFound()", []],
      ['// Deno.exit()\nimport { join } from "node:path/posix";', []],
    ];
    for (const [text, want] of rows) assert.deepEqual(ioIn(text), want, text);
  },
);

Deno.test("modules without a scope do no I/O of their own", reading, () => {
  const problems = readFiles(...PROGRAM).flatMap(({ path, text }) => {
    if (isForTests(path) || rowOf(path)?.scope.length !== 0) return [];
    return ioIn(text).map((what) => `${path}: ${what}`);
  });
  assert.deepEqual(problems, []);
});

Deno.test("HTTP/2 is spoken in code of our own: the runtime's can end the process", reading, () => {
  const users = readFiles("src/").filter(({ imports }) =>
    imports.some(({ specifier }) => specifier === "node:http2")
  );
  assert.deepEqual(users.map(({ path }) => path).filter((path) => !isForTests(path)), []);
});

Deno.test("every file is imported by another, or begins something", reading, () => {
  const files = readFiles("src/", "tests/", "scripts/", ...PROGRAM.slice(1));
  const text = Deno.readTextFileSync(new URL("main.ts", ROOT));
  files.push({ path: "main.ts", text, imports: readImports(text) });
  const seams = new Set(Object.keys(TABLE).flatMap(entrancesOf));
  const begins = (path: string) =>
    path === "main.ts" || /_(worker|main)\.ts$/.test(path) || seams.has(path) ||
    path.startsWith("ui/");
  const byPath = new Map(files.map((file) => [file.path, file]));
  const program = new Set<string>();
  const visit = (path: string): void => {
    if (program.has(path)) return;
    program.add(path);
    for (const { specifier } of byPath.get(path)?.imports ?? []) {
      if (specifier.startsWith(".")) visit(target(path, specifier));
    }
  };
  for (const { path } of files) if (begins(path)) visit(path);
  // What only tests use says so by its name; a test imports it, or starts it.
  const isNamed = (path: string) => {
    const name = path.slice(path.lastIndexOf("/"));
    return files.some((file) => file.path !== path && file.text.includes(`${name}"`));
  };
  const left = files.map(({ path }) => path).filter((path) => {
    if (!path.startsWith("src/") || /_(test|bench)\.ts$/.test(path)) return false;
    return isForTests(path) ? !isNamed(path) : !program.has(path);
  });
  assert.deepEqual(left, []);
});

/**
 * What is loaded with a file, itself too: paths, and packages by name. `later`: also what is loaded
 * when something asks for it.
 */
function loadedBy(
  entry: string,
  files: ReadonlyMap<string, SourceFile>,
  later: boolean,
): ReadonlySet<string> {
  const loaded = new Set<string>();
  const visit = (path: string): void => {
    if (loaded.has(path)) return;
    loaded.add(path);
    const file = files.get(path);
    assert.ok(file !== undefined, path);
    for (const { specifier, typeOnly, isDynamic } of file.imports) {
      if (typeOnly || (isDynamic && !later)) continue;
      if (specifier.startsWith(".")) visit(target(path, specifier));
      else loaded.add(specifier);
    }
  };
  visit(entry);
  return loaded;
}

Deno.test("a dns isolate holds encrypted DNS only where it is asked for", reading, () => {
  const files = new Map(readFiles("src/").map((file) => [file.path, file]));
  const entry = "src/isolate/dns/dns_worker.ts";
  const parts = [
    ...["src/transport/listen/dot.ts", "src/transport/listen/doh.ts"],
    ...["src/transport/listen/doq.ts", "src/transport/listen/tls.ts"],
    ...["src/transport/listen/http2/connection.ts", "src/transport/exchange/encrypted.ts"],
    ...["src/transport/exchange/quic_dial.ts", "src/transport/exchange/doq_channel.ts"],
    ...["node:tls", "@hpke/core"],
  ];
  const atStart = loadedBy(entry, files, false);
  assert.deepEqual(parts.filter((part) => atStart.has(part)), []);
  assert.ok(atStart.has("src/transport/listen/tcp.ts") && atStart.has("node:net"));
  const ever = loadedBy(entry, files, true);
  assert.deepEqual(parts.filter((part) => !ever.has(part)), [], "they are still there");
  assert.ok(!loadedBy("src/transport/exchange_encrypted.ts", files, true).has(parts[6]));
  // Oblivious DoH is a matter of its own, and the largest.
  assert.ok(!loadedBy("src/isolate/dns/encrypted.ts", files, false).has("@hpke/core"));
  // A third of what an isolate would hold: those who answer have nothing to check with it.
  for (const isolate of Object.keys(SCOPES)) {
    assert.ok(
      !loadedBy(`src/isolate/${isolate}/${isolate}_worker.ts`, files, true).has("zod"),
      isolate,
    );
  }
});

Deno.test("stage 1 of a start loads nothing that answers anybody", reading, () => {
  const files = new Map(readFiles("src/").map((file) => [file.path, file]));
  // The runtime reads what literal imports name before the first line runs, those for later too.
  const loaded = loadedBy("src/cli/run_main.ts", files, true);
  const modules = new Set([...loaded].map(moduleOf).filter((name) => name !== ""));
  const own = [
    "addr",
    "bytes",
    "cli",
    "config",
    "isolate",
    "logqueue",
    "model",
    "native",
    "node",
    "process",
  ];
  assert.deepEqual([...modules].sort(), own);
  assert.ok(!loaded.has("zod") && !loaded.has("src/node/mod.ts"));
});

Deno.test("SCOPES give each isolate what its modules need, and no more", reading, () => {
  const files = new Map(readFiles("src/").map((file) => [file.path, file]));
  for (const [isolate, scope] of Object.entries(SCOPES)) {
    const needed = new Set<string>();
    for (const path of loadedBy(`src/isolate/${isolate}/${isolate}_worker.ts`, files, true)) {
      const name = moduleOf(path);
      if (name === "isolate" || !Object.hasOwn(TABLE, name)) continue;
      for (const permission of TABLE[name].scope) needed.add(permission);
    }
    const permissions = scope("/var/lib/svc/querylog");
    const given = Object.keys(permissions);
    assert.deepEqual(given.sort(), [...needed].sort(), isolate);
  }
});

/** A row's scope as the README's cell `said` has to have it, which may say of what it is. */
function scopeText({ scope }: Row, said: string): string {
  if (typeof scope === "string") return scope;
  if (scope.length === 0) return "none";
  const parts = said.split("; ").map((part) => part.split(": ", 1)[0]);
  const isSaid =
    parts.flatMap((part) => part.split(", ")).sort().join() === [...scope].sort().join();
  return isSaid ? said : scope.join(", ");
}

Deno.test("the README's table of modules is this one", reading, () => {
  const readme = Deno.readTextFileSync(new URL("README.md", ROOT));
  const rows = Array.from(
    readme.matchAll(/^\| `(\w+)` +\|[^|\n]*\| ([^|\n]*?) +\| ([^|\n]*?) +\|$/gm),
    ([, name, imports, scope]) => ({ name, imports, scope }),
  ).filter(({ name }) => Object.hasOwn(TABLE, name));
  for (const { name, imports, scope } of rows) {
    const row = TABLE[name];
    assert.equal(scope, scopeText(row, scope), `README: scope of ${name}`);
    if (Object.hasOwn(WIRED, name)) {
      assert.equal(imports, WIRED[name], `README: ${name}`);
      continue;
    }
    const want = row.imports.map((one) => row.types?.includes(one) ? `${one} (types)` : one);
    const said = imports === "–" ? [] : imports.split(", ");
    assert.deepEqual(said.sort(), want.sort(), `README: ${name}`);
  }
  const said = new Set(rows.map(({ name }) => name));
  const there = new Set(readFiles(...PROGRAM).map(({ path }) => moduleOf(path)));
  assert.deepEqual([...there].filter((name) => name !== "" && !said.has(name)), []);
  for (const name of Object.keys(SHARED)) assert.ok(readme.includes(`src/${name}`), name);
  const names = Object.keys(TABLE);
  const order = rows.map(({ name }) => names.indexOf(name));
  assert.deepEqual(order, order.toSorted((a, b) => a - b), "README: the order of the rows");
});

Deno.test("RELEASED_MS is no older than the newest version that has a date", reading, () => {
  const changelog = Deno.readTextFileSync(new URL("CHANGELOG.md", ROOT));
  const dates = changelog.matchAll(/^## \S+ \((\d{4}-\d{2}-\d{2})\)$/gm);
  for (const [heading, date] of dates) assert.ok(RELEASED_MS >= Date.parse(date), heading);
  assert.ok(RELEASED_MS <= Date.now(), "it is no day to come");
});

Deno.test("VERSION is that of deno.json", reading, () => {
  const config = JSON.parse(Deno.readTextFileSync(new URL("deno.json", ROOT)));
  assert.equal(VERSION, config.version);
});

Deno.test("no file is longer than can be read", reading, () => {
  const long = readFiles("tests/", "scripts/", ...PROGRAM).map(({ path, text }) => ({
    path,
    lines: text.split("\n").length - 1,
  })).filter(({ path, lines }) => {
    const isSource = /^(src|ui)\//.test(path) && !isForTests(path);
    const linesMax = isSource ? LINES_MAX.source : LINES_MAX.others;
    return lines > linesMax && !LONG_TABLES.includes(path);
  });
  assert.deepEqual(long, []);
});

Deno.test("no file holds unfinished work without its number", reading, () => {
  // Written in pieces, so that this file is no find of its own.
  const words: readonly (readonly [string, RegExp])[] = [
    ["open work without its number", new RegExp(`\\b${"TO"}DO\\b(?!\\(#\\d+\\): )`)],
    ["another word for open work", new RegExp(`\\b(${"FIX"}ME|${"XX"}X|${"HA"}CK)\\b`)],
    ["an unchecked line", new RegExp(`@ts-${"ig"}nore|@ts-${"no"}check`)],
    ["a test that hides the others", new RegExp(`\\bDeno\\.test\\.${"on"}ly|\\b${"on"}ly: true`)],
    ["a stop for a debugger", new RegExp(`^\\s*${"debug"}ger;`, "m")],
  ];
  const problems = readFiles("tests/", "scripts/", ...PROGRAM).flatMap(({ path, text }) =>
    words.filter(([, pattern]) => pattern.test(text)).map(([what]) => `${path}: ${what}`)
  );
  assert.deepEqual(problems, []);
});

Deno.test(
  "zod comes by its parts, so that a bundle has no more of it than is used",
  reading,
  () => {
    const whole = /^import (?!type )\{[^}]*\} from "zod"/m;
    const found = readFiles(...PROGRAM).filter(({ text }) => whole.test(text));
    assert.deepEqual(found.map(({ path }) => path), []);
  },
);
