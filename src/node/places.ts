import { dirname } from "node:path/posix";
import type { Config } from "../config/mod.ts";
import type { PathRule } from "../process/mod.ts";

/** Where the program is, and what it was started with. */
export interface ProgramPlaces {
  /** The runtime's executable. */
  readonly runtime: string;
  /** The folder of the program's modules. */
  readonly modules: string;
  /** The one file that carries both, which they were extracted from; `null`: there is none. */
  readonly file: string | null;
  /** The runtime's caches. */
  readonly caches: string | null;
  /** For copies of what can't be written where it is; `null`: there is no such place. */
  readonly temporary: string | null;
  /** The configuration, which need not be there. */
  readonly config: string;
}

/** Directories that hold more than is anybody's business: of these, files are named one by one. */
const BROAD = new Set(
  ["/", "/etc", "/usr", "/var", "/var/lib", "/home", "/root", "/opt", "/srv", "/run", "/mnt"],
);
/** What every program needs: the C library, time zones, certificates of the public's authorities. */
const SYSTEM_READ = [
  "/lib",
  "/lib64",
  "/usr/lib",
  "/usr/lib64",
  "/etc/ld.so.cache",
  "/etc/localtime",
  "/usr/share/zoneinfo",
  "/etc/ssl",
  "/etc/pki",
  "/usr/share/ca-certificates",
  "/usr/local/share/ca-certificates",
  "/proc",
  "/sys/fs/cgroup",
  "/sys/devices/system/cpu",
  "/dev/urandom",
  "/usr/bin/ldd", // Argon2's loader looks there for which C library there is.
];
const SYSTEM_WRITE = ["/dev/null"];
/** What starts programs, by architecture. */
const LOADERS = {
  x86_64: "/lib64/ld-linux-x86-64.so.2",
  aarch64: "/lib/ld-linux-aarch64.so.1",
} as const;

/** The real path of what is there; `null`: nothing is. */
export type RealPath = (path: string) => string | null;

/**
 * Every path that a node with this configuration touches once its sockets are open. Files that are
 * renewed by putting others in their place are named by their directories, those behind links too.
 */
export function placesOf(
  config: Config,
  program: ProgramPlaces,
  realPath: RealPath,
  arch: typeof Deno.build.arch = Deno.build.arch,
): PathRule[] {
  const rules = new Map<string, PathRule>();
  const ranks = ["read", "execute", "write"];
  const add = (path: string | null, may: PathRule["may"]) => {
    if (path === null) return;
    const known = rules.get(path);
    if (known !== undefined && ranks.indexOf(known.may) >= ranks.indexOf(may)) return;
    rules.set(path, { path, may });
  };
  const around = (file: string | null) => {
    if (file === null) return;
    for (const path of new Set([file, realPath(file) ?? file])) {
      const directory = dirname(path);
      add(BROAD.has(directory) ? path : directory, "read");
    }
  };
  // A file is executed by its directory: the next one has another inode.
  const { runtime, file } = program;
  add(file === null ? dirname(runtime) : dirname(dirname(runtime)), "execute");
  const loader = realPath(LOADERS[arch]);
  add(loader === null ? null : dirname(loader), "execute");
  add(program.modules, "read");
  add(program.caches, "read");
  around(file);
  around(program.config);
  for (const path of SYSTEM_READ) add(path, "read");
  for (const path of [...SYSTEM_WRITE, program.temporary]) add(path, "write");
  add(config.store.dir, "write");
  add(config.querylog.dir, "write");
  add(config.filter.localListsDir, "read");
  for (const path of filesOf(config)) around(path);
  // Connecting is no writing to the kernel, and is to the runtime.
  const dnstap = config.querylog.dnstap?.target;
  if (dnstap?.kind === "unix") add(dnstap.path, "write");
  return [...rules.values()];
}

/** The files that a configuration names, whatever for. */
function filesOf(config: Config) {
  const { server, upstreams, filter, recursion, api, cluster, telemetry } = config;
  const { devices, querylog, acme } = config;
  return [
    ...[server.tls.files, api.tls, cluster].flatMap((files) =>
      files === null ? [] : [files.certFile, files.keyFile]
    ),
    ...upstreams.map((upstream) => upstream.kind === "udp" ? null : upstream.caFile),
    ...[filter.servicesFile, recursion.rootHintsFile, recursion.trustAnchorFile],
    ...[cluster?.caFile ?? null, telemetry.headersFile, telemetry.caFile],
    ...devices.hostsFiles,
    ...devices.leaseFiles,
    ...[querylog.dnstap?.caFile, querylog.otlp?.headersFile, querylog.otlp?.caFile].map((file) =>
      file ?? null
    ),
    ...[acme?.caFile ?? null, acme?.external?.hmacKeyFile ?? null],
  ];
}

const READ_ALL = "--allow-read";
const WRITE_ALL = "--allow-write";

/**
 * The arguments of the runtime with its permissions to read and write narrowed to these places: a
 * second fence, which stands where the kernel has none. Paths that its lists can't hold leave it all.
 */
export function narrowed(args: readonly string[], rules: readonly PathRule[]): string[] {
  const paths = rules.map(({ path }) => path);
  if (paths.some((path) => path.includes(","))) return [...args];
  const writable = rules.filter(({ may }) => may === "write").map(({ path }) => path);
  const isFlag = (arg: string, flag: string) => arg === flag || arg.startsWith(`${flag}=`);
  return args.map((arg) => {
    if (isFlag(arg, READ_ALL)) return `${READ_ALL}=${paths.join(",")}`;
    if (isFlag(arg, WRITE_ALL)) return `${WRITE_ALL}=${writable.join(",")}`;
    return arg;
  });
}
