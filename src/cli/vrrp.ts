import { formatIp } from "../addr/mod.ts";
import { equalBytes } from "../bytes/mod.ts";
import { type Config, formatProblem, type VrrpConfig } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import {
  adoptRawSockets,
  askStatus,
  type Ending,
  FloatingAddress,
  KernelTables,
  type Libc,
  openRawSockets,
  type RawSockets,
  type Role,
} from "../floating/mod.ts";
import { log } from "../log.ts";
import { openProcess, type Process } from "../native/system.ts";
import { nextProgram } from "../node/next_program.ts";
import {
  capabilities,
  Capability,
  dropPrivileges,
  executeProgram,
  executeSelf,
  hasCapabilities,
  hearOrders,
  holdOrders,
  inherit,
  lookUpUser,
  type Program,
} from "../process/mod.ts";
import { DEFAULT_CONFIG_FILE, loadConfig } from "./load_config.ts";
import { readOptions } from "./options.ts";
import { openLibc, ownDns } from "./own_dns.ts";

const EXIT_INVALID = 2;

const HELP = `svc vrrp [--config FILE] [--status]

Moves the address of [vrrp] between two nodes: this one holds it while its DNS answers and no node of
a higher priority announces itself. Runs beside svc run until SIGTERM or SIGINT, and then gives the
address up at once. It needs CAP_NET_RAW and CAP_NET_ADMIN, and keeps CAP_NET_ADMIN alone, as the user
of [server] if there is one. SIGHUP logs a status line; SIGUSR2 has it go on as the program and with
the configuration that are there by then, and the address stays where it is.

  --config FILE  the configuration (default ${DEFAULT_CONFIG_FILE})
  --status       tells who holds the address, and why, as the running svc vrrp knows it
  --help         this text

Exit code: 0 done, 1 failed or, with --status, not running, 2 wrong usage or invalid configuration.`;

/** `svc vrrp`; returns the exit code. */
export async function vrrp(args: string[]): Promise<number> {
  const options = readOptions("vrrp", HELP, args, {
    config: { type: "string" },
    status: { type: "boolean" },
  });
  if (typeof options === "number") return options;
  const { config, problems, source } = await loadConfig(options.config);
  for (const problem of problems) console.error(formatProblem(problem));
  if (config === null) return EXIT_INVALID;
  if (config.vrrp === null) {
    const message = "is missing: write interface, address, peer and router_id there";
    console.error(formatProblem({ ...source, line: 0, key: "vrrp", message, severity: "error" }));
    return EXIT_INVALID;
  }
  const libc = openLibc();
  if (options.status === true) return tellStatus(libc, config.vrrp);
  return await hold(libc, config, config.vrrp, options.config);
}

function tellStatus(libc: Libc, config: VrrpConfig): number {
  const status = askStatus(libc, config);
  if (status !== null) {
    console.log(status.trimEnd());
    return 0;
  }
  const address = formatIp(config.address);
  console.error(`svc vrrp: nothing runs here for ${address}: start svc-vrrp.service, or svc vrrp`);
  return 1;
}

async function hold(
  libc: Libc,
  config: Config,
  vrrp: VrrpConfig,
  file: string | undefined,
): Promise<number> {
  const target = ownDns(config);
  const process = openProcess();
  if (process === null) {
    throw new SvcError("unavailable", "this needs Linux with the GNU C library");
  }
  const legacy = inherit(process);
  if (legacy === null) return startAnew(libc, process, config, vrrp);
  const sockets = adoptRawSockets(libc, legacy.descriptors);
  const notes = legacy.notes as VrrpNotes | null;
  const left = capabilities(process);
  if (left !== 1n << BigInt(Capability.NetAdmin)) {
    throw new SvcError("unavailable", `could not give up capabilities: ${left.toString(16)} left`);
  }
  const stop = Promise.withResolvers<Deno.Signal | Next>();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    Deno.addSignalListener(signal, () => stop.resolve(signal));
  }
  Deno.addSignalListener("SIGUSR2", () => {
    findNext(file, vrrp).then(stop.resolve, (error) => {
      log.error("not upgraded, this program goes on", { error: messageOf(error) });
    });
  });
  const address = new FloatingAddress(libc, sockets, vrrp, target, notes?.role);
  Deno.addSignalListener("SIGHUP", () => address.logStatus());
  hearOrders(process);
  process.close(); // What could change the process again.
  const role = await address.run(stop.promise.then(endingOf));
  const why = await stop.promise;
  if (typeof why !== "string") goOn(why, sockets, role);
  log.info("stopped", { signal: why });
  return 0;
}

/** What a program leaves to the next one, beside its sockets. */
interface VrrpNotes {
  readonly role: Role;
}

interface Next {
  readonly program: Program;
  /** It is to have the same address at the same interface. */
  readonly keepsAddress: boolean;
}

function endingOf(why: Deno.Signal | Next): Ending {
  return typeof why !== "string" && why.keepsAddress ? "hand on" : "give up";
}

/**
 * What this program is by now, by the configuration as it is by now.
 *
 * @throws {SvcError} With what the next program would end for.
 */
async function findNext(file: string | undefined, former: VrrpConfig): Promise<Next> {
  const { config, problems } = await loadConfig(file);
  const found = problems.find(({ severity }) => severity === "error");
  if (config === null || config.vrrp === null) {
    const reason = found === undefined ? "[vrrp] is missing" : formatProblem(found);
    throw new SvcError("invalid", `the configuration is not valid: ${reason}`);
  }
  const { vrrp } = config;
  const keepsAddress = equalBytes(vrrp.address, former.address) &&
    vrrp.prefixLengthBits === former.prefixLengthBits && vrrp.interface === former.interface &&
    vrrp.routerId === former.routerId;
  const process = openProcess();
  if (process === null) throw new SvcError("unavailable", "the C library can't be had");
  try {
    return { program: await nextProgram(process, "vrrp"), keepsAddress };
  } finally {
    process.close();
  }
}

/** Executes the next program, which finds the role that it is left. Does not return. */
function goOn({ program, keepsAddress }: Next, { vrrp, arp }: RawSockets, role: Role): never {
  const process = openProcess();
  if (process === null) throw new SvcError("unavailable", "the C library can't be had");
  holdOrders(process); // A stop in between would leave the address here, and nobody to give it up.
  log.info("going on as the next program", { program: program.path, role });
  const notes: VrrpNotes | null = keepsAddress ? { role } : null;
  return executeProgram(process, program, { descriptors: [vrrp, arp], notes });
}

/** Stage 1: opens what takes privileges, gives them up, and goes on as stage 2. Does not return. */
function startAnew(libc: Libc, process: Process, config: Config, vrrp: VrrpConfig): never {
  if (!hasCapabilities(process, [Capability.NetRaw, Capability.NetAdmin])) {
    throw new SvcError(
      "forbidden",
      "needs CAP_NET_RAW and CAP_NET_ADMIN: start it by svc-vrrp.service or as root",
    );
  }
  const { peer, interface: device } = vrrp;
  const tables = new KernelTables(libc);
  if (tables.addresses().some(({ address }) => equalBytes(address, peer))) {
    throw new SvcError(
      "invalid",
      `vrrp.peer: ${formatIp(peer)} is an address of this machine: write the other node's own`,
    );
  }
  if (tables.link(device)?.isLoopback) {
    throw new SvcError("invalid", `vrrp.interface: ${device} leads to no other node: name another`);
  }
  const { user } = config.server;
  const ids = user === null ? null : lookUpUser(process, user);
  if (user !== null && ids === null) {
    throw new SvcError(
      "invalid",
      `server.user: there is no user ${user}: make it, or name another`,
    );
  }
  const { vrrp: raw, arp } = openRawSockets(libc);
  dropPrivileges(process, [Capability.NetAdmin], ids);
  holdOrders(process);
  executeSelf(process, [raw, arp]);
}
