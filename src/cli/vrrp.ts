import { formatIp } from "../addr/mod.ts";
import { equalBytes } from "../bytes/mod.ts";
import { type Config, formatProblem, type VrrpConfig } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import {
  adoptRawSockets,
  askStatus,
  FloatingAddress,
  KernelTables,
  type Libc,
  openRawSockets,
} from "../floating/mod.ts";
import { log } from "../log.ts";
import { openProcess, type Process } from "../native/system.ts";
import {
  capabilities,
  Capability,
  dropPrivileges,
  executeSelf,
  hasCapabilities,
  inheritedSockets,
  lookUpUser,
} from "../process/mod.ts";
import { DEFAULT_CONFIG_FILE, loadConfig } from "./load_config.ts";
import { readOptions } from "./options.ts";
import { openLibc, ownDns } from "./own_dns.ts";

const EXIT_INVALID = 2;

const HELP = `svc vrrp [--config FILE] [--status]

Moves the address of [vrrp] between two nodes: this one holds it while its DNS answers and no node of
a higher priority announces itself. Runs beside svc run until SIGTERM or SIGINT, and then gives the
address up at once. It needs CAP_NET_RAW and CAP_NET_ADMIN, and keeps CAP_NET_ADMIN alone, as the user
of [server] if there is one. SIGHUP logs a status line.

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
  return await hold(libc, config, config.vrrp);
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

async function hold(libc: Libc, config: Config, vrrp: VrrpConfig): Promise<number> {
  const target = ownDns(config);
  const process = openProcess();
  if (process === null) {
    throw new SvcError("unavailable", "this needs Linux with the GNU C library");
  }
  const inherited = inheritedSockets(process);
  if (inherited === null) return startAnew(libc, process, config, vrrp);
  const sockets = adoptRawSockets(libc, inherited);
  const left = capabilities(process);
  if (left !== 1n << BigInt(Capability.NetAdmin)) {
    throw new SvcError("unavailable", `could not give up capabilities: ${left.toString(16)} left`);
  }
  process.close(); // What could change the process again.
  const stop = Promise.withResolvers<Deno.Signal>();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    Deno.addSignalListener(signal, () => stop.resolve(signal));
  }
  const address = new FloatingAddress(libc, sockets, vrrp, target);
  Deno.addSignalListener("SIGHUP", () => address.logStatus());
  await address.run(stop.promise);
  log.info("stopped", { signal: await stop.promise });
  return 0;
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
  executeSelf(process, [raw, arp]);
}
