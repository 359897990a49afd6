/** The house: its modules, and what each may import and touch. A row imports from rows above it. */

export interface Row {
  readonly imports: readonly string[];
  /** Those of `imports` that it takes types of, and nothing that runs. */
  readonly types?: readonly string[];
  /**
   * What a module may touch; nothing: it is handed its I/O as ports. In words where it holds parts
   * that differ.
   */
  readonly scope: readonly ("net" | "ffi" | "read" | "write" | "run" | "sys")[] | string;
  /** Ways in beside `mod.ts`, for who needs a part of it and is not to hold the rest. */
  readonly entrances?: readonly string[];
}

const none: Row["scope"] = [];

/** Files of `src/` that are no module and serve every row. */
export const SHARED: Readonly<Record<string, Row>> = {
  "errors.ts": { imports: [], scope: none },
  "free_memory.ts": { imports: [], scope: none },
  "log.ts": { imports: [], scope: "standard error" },
  "version.ts": { imports: [], scope: none },
};

/** `imports` and `scope` of each module, in the table's order. */
export const TABLE: Readonly<Record<string, Row>> = {
  bytes: { imports: [], scope: none },
  addr: { imports: ["bytes"], scope: none },
  clock: { imports: [], scope: none },
  dns: { imports: ["bytes", "addr"], scope: none },
  dnssec: { imports: ["bytes", "dns"], scope: none, entrances: ["verify.ts"] },
  filter: { imports: ["bytes", "addr", "dns"], scope: none },
  model: {
    imports: ["addr", "dns", "filter"],
    scope: none,
    entrances: ["constants.ts", "differences.ts"],
  },
  snapshot: { imports: ["model", "filter", "addr", "dns"], scope: none },
  cache: { imports: ["bytes", "dns"], scope: none },
  telemetry: { imports: [], scope: none },
  otlp: { imports: ["telemetry"], scope: none },
  logqueue: { imports: [], scope: none },
  resolver: {
    imports: [
      "bytes",
      "addr",
      "clock",
      "dns",
      "dnssec",
      "snapshot",
      "cache",
      "telemetry",
      "logqueue",
    ],
    scope: none,
    entrances: ["recursive/mod.ts", "validate/mod.ts"],
  },
  raft: { imports: [], scope: none },
  vrrp: { imports: ["bytes", "addr"], scope: none },
  config: {
    imports: ["bytes", "addr", "model", "dnssec", "logqueue"],
    scope: none,
    entrances: ["check_files.ts"],
  },
  native: { imports: ["bytes", "addr"], scope: ["ffi"], entrances: ["checking.ts", "system.ts"] },
  process: { imports: ["addr", "native"], scope: ["ffi"] },
  netlink: { imports: ["native"], scope: ["ffi"] },
  hosts: { imports: ["addr"], scope: none },
  floating: {
    imports: ["bytes", "addr", "dns", "vrrp", "config", "native", "netlink"],
    scope: ["ffi"],
  },
  transport: {
    imports: ["bytes", "addr", "dns", "native"],
    scope: ["net", "ffi"],
    entrances: [
      ...["listen_encrypted.ts", "oblivious.ts", "http1.ts"],
      ...["exchange_encrypted.ts", "exchange_quic.ts"],
    ],
  },
  http: {
    imports: ["addr", "model"],
    scope: ["net"],
    entrances: ["node_http.ts", "secured.ts"],
  },
  acme: { imports: ["http"], scope: none },
  install: { imports: [], scope: ["read", "write", "run"] },
  update: { imports: ["http", "install"], scope: ["read", "write"] },
  auth: { imports: ["bytes", "addr", "clock", "model"], scope: ["ffi"] },
  backup: { imports: ["bytes", "model", "auth"], scope: none },
  migrate: { imports: ["addr", "model", "config", "http"], scope: none },
  store: { imports: ["clock", "model", "raft"], scope: ["read", "write"] },
  lists: { imports: ["clock", "model", "filter", "addr", "http"], scope: ["read", "write"] },
  webhooks: { imports: ["addr", "model", "http"], types: ["http"], scope: none },
  thread: { imports: [], scope: ["sys"] },
  querylog: {
    imports: ["addr", "clock", "dns", "model", "logqueue"],
    scope: ["read", "write"],
    entrances: ["entry.ts", "record.ts"],
  },
  logexport: {
    imports: ["bytes", "addr", "dns", "otlp", "logqueue", "querylog", "http"],
    scope: ["net", "read", "write"],
  },
  cluster: {
    imports: ["bytes", "addr", "config", "raft", "store", "model"],
    scope: ["net", "read"],
    entrances: ["certificates.ts"],
  },
  api: {
    imports: [
      ...["addr", "bytes", "clock", "transport", "model", "store", "auth", "lists", "querylog"],
      ...["cluster", "logqueue", "backup", "migrate", "webhooks"],
    ],
    scope: ["net"],
  },
  isolate: {
    imports: [
      ...["addr", "clock", "dnssec", "filter", "model", "snapshot", "cache", "telemetry"],
      ...["resolver", "native", "transport", "logqueue", "querylog", "thread", "http", "otlp"],
      "logexport",
    ],
    scope: "each entry's own",
    entrances: ["seats.ts", "workers.ts"],
  },
  node: {
    imports: [
      ...["addr", "bytes", "clock", "dns", "dnssec", "filter", "model", "snapshot"],
      ...["telemetry", "otlp"],
      ...["logqueue", "resolver", "config", "native", "process", "floating", "transport", "http"],
      ...["auth", "store", "lists", "querylog", "cluster", "api", "isolate", "update", "backup"],
      ...["migrate", "netlink", "hosts", "webhooks", "acme"],
    ],
    scope: "what it wires",
    entrances: [
      ...["first_stage.ts", "launch.ts", "next_program.ts", "open_files.ts", "outbound.ts"],
      "seed.ts",
    ],
  },
  client: {
    imports: ["api"],
    types: ["api"],
    scope: ["net"],
    entrances: ["far_clock.ts", "remedy.ts"],
  },
  tui: { imports: ["api", "client"], types: ["api"], scope: "the terminal" },
  cli: {
    imports: [
      ...["bytes", "addr", "model", "config", "native", "auth", "store", "lists", "cluster"],
      ...["api", "node", "client", "tui", "floating", "install", "update", "process"],
    ],
    scope: "the program's flags",
  },
  /** Beside `src/`: what runs in a browser. */
  ui: { imports: ["api", "client"], types: ["api"], scope: "the page's origin" },
};
/** Rows of the README that have these words for their imports: they put others together. */
export const WIRED: Readonly<Record<string, string>> = {
  isolate: "what each entry wires",
  node: "what it wires",
};
