/** Latency of each transport for a client that asks now and then: what a person would feel. */
import { BenchError } from "./bench_error.ts";
import { runPaced } from "./dnsperf.ts";
import { runLoadProgram } from "./load_program.ts";
import {
  doqLoadArgs,
  h2loadArgs,
  type LoadPlan,
  SLACK_MS,
  type TransportRun,
} from "./transport_loads.ts";
import type { TlsPorts } from "./servers.ts";

/** Queries a second, one after another on one connection. */
export const PACED_RATE = 200;

/** Latencies of queries over one transport, in microseconds. */
export async function runPacedTransport(
  run: TransportRun,
  { port, tls }: { readonly port: number; readonly tls: TlsPorts },
  plan: LoadPlan,
): Promise<number[]> {
  const { queries, seconds, cpu, workspace } = plan;
  const load = { queries, seconds, cpu, once: false };
  if (run === "udp" || run === "tcp") {
    return await runPaced({ ...load, port, mode: run }, PACED_RATE);
  }
  if (run === "dot") return await runPaced({ ...load, port: tls.dot, mode: run }, PACED_RATE);
  if (run === "doh") {
    const log = workspace.path("h2load.log");
    await Deno.remove(log).catch(() => {});
    const pace = ["-c", "1", "-m", "1", "--rps", `${PACED_RATE}`, "--log-file", log];
    const args = await h2loadArgs(tls.doh, plan, pace);
    await runLoadProgram({ program: "h2load", args, cpu, seconds, slackMs: SLACK_MS });
    return parseH2loadLog(await Deno.readTextFile(log));
  }
  if (run !== "doq") throw new BenchError(`${run}: has no latency`);
  const args = doqLoadArgs(tls.doq, plan, PACED_RATE);
  const program = Deno.execPath();
  const { text } = await runLoadProgram({ program, args, cpu, seconds, slackMs: SLACK_MS });
  return text.trim().split("\n").map(Number);
}

/** Reads the file that h2load writes: start, status and microseconds of each request. */
export function parseH2loadLog(text: string): number[] {
  return Array.from(text.matchAll(/^\d+\t200\t(\d+)$/gm), ([, us]) => Number(us));
}
