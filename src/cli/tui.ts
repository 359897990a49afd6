import { runTui, statusText } from "../tui/mod.ts";
import { API_HELP, API_OPTIONS, apiClient, asked } from "./api_access.ts";
import { readOptions } from "./options.ts";

const EXIT_DEGRADED = 1;

const HELP = `svc tui [--once] [--api URL] [--token-file FILE]

Shows the running service in the terminal: status, the log as it comes, clients, groups and lists;
blocks, allows, pauses and switches. The key ? tells the keys. Where standard input or output is no
terminal it prints the status as text, as with --once.

  --once             prints the status as text, a fact a line
${API_HELP}
  --help             this text

NO_COLOR and TERM=dumb leave colours out; other than ASCII is shown where LC_ALL, LC_CTYPE or LANG
says UTF-8.

Exit code: 0 left, or all is well; 1 failed or, as text, degraded; 2 wrong usage.`;

/** `svc tui`; returns the exit code. */
export async function tui(args: string[]): Promise<number> {
  const options = readOptions("tui", HELP, args, {
    once: { type: "boolean" },
    ...API_OPTIONS,
  });
  if (typeof options === "number") return options;
  const client = await apiClient("tui", options);
  if (typeof client === "number") return client;
  const hasTerminal = Deno.stdin.isTerminal() && Deno.stdout.isTerminal();
  if (hasTerminal && !options.once) {
    await asked(runTui(client, (name) => Deno.env.get(name)));
    return 0;
  }
  const { text, isWell } = await asked(statusText(client));
  console.log(text);
  return isWell ? 0 : EXIT_DEGRADED;
}
