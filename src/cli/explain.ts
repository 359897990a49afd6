import { parseArgs } from "node:util";
import type { Explanation } from "../api/mod.ts";
import { messageOf } from "../errors.ts";
import { askApi, clientOf, DEFAULT_API } from "./ask_api.ts";

/** The exit code of wrong usage. */
const EXIT_USAGE = 2;

const HELP = `svc explain NAME [--type A] [--client ADDR] [--trace] [--api URL]

Asks the running service what a query would come to: which group it is in, which rule of which list
decides, and why the others do not. With an address in place of NAME: what a response with this
address would come to.

  --type TYPE        the type of the query (default A)
  --client ADDR      who asks: an address, or the client ID or the name of a client (default: this
                     machine)
  --trace            asks for the name anew and shows each step: which server, for what, and what
                     that said
  --api URL          the service's API (default ${DEFAULT_API})
  --token-file FILE  its first line is the API's token
  --help             this text`;

const OPTIONS = {
  type: { type: "string" },
  client: { type: "string" },
  trace: { type: "boolean" },
  api: { type: "string" },
  "token-file": { type: "string" },
  help: { type: "boolean" },
} as const;

/** `svc explain NAME`; returns the exit code. */
export async function explain(args: string[]): Promise<number> {
  let parsed;
  try {
    parsed = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    return usage(messageOf(error).split("\n", 1)[0]);
  }
  const { values, positionals } = parsed;
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  if (positionals.length !== 1) return usage("it takes one NAME");
  const api = await clientOf(values);
  if (typeof api === "string") return usage(api);
  const { type, client } = values;
  const trace = values.trace ? "true" : undefined;
  const query = { name: positionals[0], type, client, trace };
  console.log(formatExplanation(await askApi(() => api.call("GET explain", { query }))));
  return 0;
}

function usage(reason: string): number {
  console.error(`svc explain: ${reason} (svc explain --help tells more)`);
  return EXIT_USAGE;
}

/** Outcomes of rules: what is answered is known, even where it is nothing. */
const DECIDED = ["blocked", "rewritten", "safe_search"];

function because(reason: string | null): string {
  return reason === null ? "" : `: ${reason}`;
}

/** An explanation as lines of text, without anything a terminal would act on. */
export function formatExplanation(explanation: Explanation): string {
  const { name, type, client, group, outcome, rule, list, records, matches, dnssec, trace } =
    explanation;
  const [deciding, ...others] = matches.filter(({ lost }) => lost === null);
  const lines = [
    `${name} ${type}: ${outcome}`,
    `client: ${client === null ? "not known" : `${client.name} (${client.id})`}`,
    `group: ${group.name} (${group.id})`,
    rule === null
      ? "rule: none decides"
      : `rule: ${rule} of ${deciding?.list_name ?? list} (${list})`,
    ...(records.length === 0 && DECIDED.includes(outcome) ? ["answer: no record"] : []),
    ...records.map((record) => `answer: ${record}`),
    ...(dnssec === null ? [] : [`dnssec: ${dnssec.result}${because(dnssec.reason)}`]),
    ...others.map(({ rule, list_name }) => `also: ${rule} of ${list_name}`),
    ...matches.filter(({ lost }) => lost !== null).map(({ rule, list_name, lost }) =>
      `not: ${rule} of ${list_name}: ${lost}`
    ),
    ...(trace === null ? [] : traceLines(trace)),
  ];
  return lines.map((line) => line.replace(/\p{Cc}/gu, "�")).join("\n");
}

/** The steps of a resolution, those that others depend on further in. */
function traceLines(trace: NonNullable<Explanation["trace"]>): string[] {
  const { steps, dropped, rcode, records, failure, took_ms } = trace;
  return [
    "trace:",
    ...steps.map(({ at_ms, depth, event, question, zone, server, detail }) => {
      const words = [
        question,
        zone === null ? null : `zone ${zone}`,
        server === null ? null : `server ${server}`,
        detail,
      ].filter((word) => word !== null);
      return `${`${at_ms}`.padStart(8)} ms  ${"  ".repeat(depth)}${event}: ${words.join(", ")}`;
    }),
    ...(dropped === 0 ? [] : [`and ${dropped} further steps`]),
    `result: ${rcode ?? "none"} after ${took_ms} ms${failure === null ? "" : `: ${failure}`}`,
    ...records.map((record) => `  ${record}`),
  ];
}
