/** `/metrics` as a scraper sees it. */
import assert from "node:assert/strict";
import parsePrometheus from "parse-prometheus-text-format";
import { runProgram } from "./harness.ts";

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly metrics: readonly {
    readonly value?: string;
    readonly labels?: Readonly<Record<string, string>>;
  }[];
}

/** What a scraper gets; `base` is the address of the API. */
export async function exposition(base: string, ...args: readonly string[]): Promise<string> {
  const url = base.replace("/api/v1", "/metrics");
  const { stdout } = await runProgram("curl", "-sf", ...args, url);
  return stdout;
}

/** The same by name. */
export async function scrape(
  base: string,
  ...args: readonly string[]
): Promise<Map<string, Family>> {
  const families = parsePrometheus(await exposition(base, ...args)) as Family[];
  return new Map(families.map((family) => [family.name, family]));
}

export function valueOf(
  families: Map<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const found = families.get(name)?.metrics.find((metric) =>
    Object.entries(labels).every(([key, value]) => metric.labels?.[key] === value)
  );
  assert.ok(found?.value !== undefined, `${name} ${JSON.stringify(labels)}`);
  return Number(found.value);
}
