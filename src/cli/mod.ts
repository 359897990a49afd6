/**
 * `svc` and its subcommands: reads arguments, builds the objects, says what went wrong and how to
 * mend it. Scope: the program's flags. @module
 */
import { runCommand } from "./run_command.ts";

/** What a command comes to. */
export const Exit = { Done: 0, Failed: 1, Usage: 2 } as const;

interface Subcommand {
  readonly summary: string;
  /** Takes what stands behind the command's name; returns the exit code. */
  readonly run: (args: string[]) => Promise<number>;
}

/** Each loads its modules when it is asked for: no command waits for those of another. */
const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  "run": {
    summary: "answers DNS queries until it is stopped",
    run: async (args) => await (await import("./run.ts")).run(args),
  },
  "check-config": {
    summary: "checks a configuration file without starting",
    run: async (args) => await (await import("./check_config.ts")).checkConfig(args),
  },
  "import": {
    summary: "takes lists and rules of the configuration into the store",
    run: async (args) => await (await import("./import.ts")).importConfig(args),
  },
  "token": {
    summary: "prints a token for the API, and manages those of the running service",
    run: async (args) => await (await import("./token.ts")).token(args),
  },
  "user": {
    summary: "manages the users of a stopped node",
    run: async (args) => await (await import("./user.ts")).user(args),
  },
  "backup": {
    summary: "takes the configuration and the users into one file",
    run: async (args) => await (await import("./backup.ts")).backup(args),
  },
  "restore": {
    summary: "puts what a backup has in the place of all that is there",
    run: async (args) => await (await import("./backup.ts")).restore(args),
  },
  "migrate": {
    summary: "adds what AdGuard Home or Pi-hole has to the running service",
    run: async (args) => await (await import("./migrate.ts")).migrate(args),
  },
  "explain": {
    summary: "tells what a query would be answered, and why",
    run: async (args) => await (await import("./explain.ts")).explain(args),
  },
  "unblock": {
    summary: "lets a name through for a while",
    run: async (args) => await (await import("./unblock.ts")).unblock(args),
  },
  "tui": {
    summary: "shows the running service in the terminal",
    run: async (args) => await (await import("./tui.ts")).tui(args),
  },
  "health": {
    summary: "tells whether the service on this machine answers",
    run: async (args) => await (await import("./health.ts")).health(args),
  },
  "openapi": {
    summary: "prints the API's OpenAPI document",
    run: async (args) => await (await import("./openapi.ts")).openapi(args),
  },
  "cluster": {
    summary: "makes a cluster's authority and the certificates of its members",
    run: async (args) => await (await import("./cluster.ts")).cluster(args),
  },
  "witness": {
    summary: "votes in a cluster and answers no DNS, until it is stopped",
    run: async (args) => await (await import("./witness.ts")).witness(args),
  },
  "vrrp": {
    summary: "moves the floating address between two nodes",
    run: async (args) => await (await import("./vrrp.ts")).vrrp(args),
  },
  "install": {
    summary: "makes this file a service of the machine",
    run: async (args) => await (await import("./install.ts")).install(args),
  },
  "uninstall": {
    summary: "takes that away again",
    run: async (args) => await (await import("./install.ts")).uninstall(args),
  },
  "update": {
    summary: "looks for a newer release, and puts it in the place of this one",
    run: async (args) => await (await import("./update.ts")).update(args),
  },
  "version": {
    summary: "prints version, Deno and V8 versions, and target",
    run: async (args) => await (await import("./version.ts")).version(args),
  },
};

function help(): string {
  const rows = Object.entries(SUBCOMMANDS).map(([name, c]) => `  ${name.padEnd(14)}${c.summary}`);
  return `svc: a filtering DNS resolver

svc <command> [options]

${rows.join("\n")}
  help          prints this text

svc <command> --help tells the options of a command.`;
}

/** Runs `svc` with its arguments; returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined) {
    console.error(help());
    return Exit.Usage;
  }
  if (name === "help" || name === "--help" || name === "-h") {
    console.log(help());
    return Exit.Done;
  }
  const subcommand = Object.hasOwn(SUBCOMMANDS, name) ? SUBCOMMANDS[name] : undefined;
  if (subcommand === undefined) {
    console.error(`svc: ${JSON.stringify(name)} is no command: svc help lists them`);
    return Exit.Usage;
  }
  return await runCommand(name, () => subcommand.run(rest));
}
