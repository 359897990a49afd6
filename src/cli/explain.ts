import type { Explanation } from "../api/mod.ts";
import { API_HELP, API_OPTIONS, apiClient, asked } from "./api_access.ts";
import { harmless } from "./harmless.ts";
import { readOperand } from "./options.ts";

const HELP = `svc explain NAME [--type A] [--client ADDR] [--trace] [--api URL]

Asks the running service what a query would come to: which group it is in, which rule of which list
decides, and why the others do not. With an address in place of NAME: what a response with this
address would come to.

  --type TYPE        the type of the query (default A)
  --client ADDR      who asks: an address, or the client ID or the name of a client (default: this
                     machine)
  --trace            asks for the name anew and shows each step: which server, for what, and what
                     that said
${API_HELP}
  --help             this text`;

const OPTIONS = {
  type: { type: "string" },
  client: { type: "string" },
  trace: { type: "boolean" },
  ...API_OPTIONS,
} as const;

/** `svc explain NAME`; returns the exit code. */
export async function explain(args: string[]): Promise<number> {
  const read = readOperand("explain", HELP, args, OPTIONS, "NAME");
  if (typeof read === "number") return read;
  const { values, operand: name } = read;
  const api = await apiClient("explain", values);
  if (typeof api === "number") return api;
  const { type, client } = values;
  const trace = values.trace ? "true" : undefined;
  const query = { name, type, client, trace };
  console.log(formatExplanation(await asked(api.call("GET explain", { query }))));
  return 0;
}

/** Outcomes of rules: what is answered is known, even where it is nothing. */
const DECIDED = ["blocked", "rewritten", "safe_search"];

function because(reason: string | null): string {
  return reason === null ? "" : `: ${reason}`;
}

/** Who would be asked. */
function upstreamsText(upstreams: NonNullable<Explanation["upstreams"]>): string {
  if (upstreams.length === 0) return "none that this node has";
  return upstreams.map(({ address, name }) => name === null ? address : `${name} (${address})`)
    .join(", ");
}

/** An explanation as lines of text, without anything a terminal would act on. */
export function formatExplanation(explanation: Explanation): string {
  const {
    name,
    type,
    client,
    group,
    outcome,
    target,
    rule,
    list,
    records,
    matches,
    upstreams,
    dnssec,
    trace,
  } = explanation;
  const [deciding, ...others] = matches.filter(({ lost }) => lost === null);
  const lines = [
    `${name} ${type}: ${outcome}`,
    `client: ${client === null ? "not known" : `${client.name} (${client.id})`}`,
    `group: ${group.name} (${group.id})`,
    ...(target ? [`target: ${target}`] : []),
    rule === null
      ? "rule: none decides"
      : `rule: ${rule} of ${deciding?.list_name ?? list} (${list})`,
    ...(records.length === 0 && DECIDED.includes(outcome) ? ["answer: no record"] : []),
    ...records.map((record) => `answer: ${record}`),
    ...(explanation.querylog ? [] : ["querylog: such queries are not logged"]),
    ...(explanation.statistics ? [] : ["statistics: such queries are not counted"]),
    ...(upstreams ? [`upstreams: ${upstreamsText(upstreams)}`] : []),
    ...(dnssec === null ? [] : [`dnssec: ${dnssec.result}${because(dnssec.reason)}`]),
    ...others.map(({ rule, list_name }) => `also: ${rule} of ${list_name}`),
    ...matches.filter(({ lost }) => lost !== null).map(({ rule, list_name, lost }) =>
      `not: ${rule} of ${list_name}: ${lost}`
    ),
    ...(trace === null ? [] : traceLines(trace)),
  ];
  return lines.map(harmless).join("\n");
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
