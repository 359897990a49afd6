import { runTui, statusText } from "../tui/mod.ts";
import { askApi, clientOf, DEFAULT_API } from "./ask_api.ts";
import { readOptions } from "./options.ts";

const EXIT_DEGRADED = 1;
const EXIT_USAGE = 2;

const HELP = `svc tui [--once] [--api URL] [--token-file FILE]

Shows the running service in the terminal: status, the log as it comes, clients, groups and lists;
blocks, allows, pauses and switches. The key ? tells the keys. Where standard input or output is no
terminal it prints the status as text, as with --once.

  --once             prints the status as text, a fact a line
  --api URL          the service's API (default ${DEFAULT_API})
  --token-file FILE  its first line is the API's token
  --help             this text

NO_COLOR and TERM=dumb leave colours out; other than ASCII is shown where LC_ALL, LC_CTYPE or LANG
says UTF-8.

Exit code: 0 left, or all is well; 1 failed or, as text, degraded; 2 wrong usage.`;

/** `svc tui`; returns the exit code. */
export async function tui(args: string[]): Promise<number> {
  const options = readOptions("tui", HELP, args, {
    once: { type: "boolean" },
    api: { type: "string" },
    "token-file": { type: "string" },
  });
  if (typeof options === "number") return options;
  const client = await clientOf(options);
  if (typeof client === "string") {
    console.error(`svc tui: ${client} (svc tui --help tells more)`);
    return EXIT_USAGE;
  }
  const hasTerminal = Deno.stdin.isTerminal() && Deno.stdout.isTerminal();
  if (hasTerminal && !options.once) {
    await askApi(() => runTui(client, (name) => Deno.env.get(name)));
    return 0;
  }
  const { text, isWell } = await askApi(() => statusText(client));
  console.log(text);
  return isWell ? 0 : EXIT_DEGRADED;
}
