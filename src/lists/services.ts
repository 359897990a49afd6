import * as z from "zod";
import { parseRule, type RuleForm } from "../filter/mod.ts";
import { SvcError } from "../errors.ts";

/** Services that can be blocked by name. */
export interface Service {
  readonly id: string;
  readonly name: string;
  readonly group: string | null;
  /** Those of its rules that we read. */
  readonly rules: readonly string[];
}

/** Most services of a catalogue, and most rules of one service. */
const SERVICES_MAX = 2_000;
const RULES_MAX = 5_000;

/** The catalogue's own shape; what else it holds (icons, say) is passed over. */
const Catalogue = z.object({
  blocked_services: z.array(z.object({
    id: z.string().regex(/^[a-z0-9_-]{1,64}$/i),
    name: z.string().max(128),
    rules: z.array(z.string()).max(RULES_MAX),
    group: z.string().max(64).optional(),
  })).max(SERVICES_MAX),
});

/**
 * Reads a catalogue of services. A rule that we can't read is left out, and so is a service that has
 * no blocking rule left; of two with one ID the first counts.
 *
 * @throws {SvcError} `invalid`, when the text is no catalogue.
 */
export function decodeServices(text: string): Service[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new SvcError("invalid", "the services catalogue is no JSON", { cause: error });
  }
  const catalogue = Catalogue.safeParse(json);
  if (!catalogue.success) {
    const [issue] = catalogue.error.issues;
    const place = issue.path.join(".") || "the whole";
    throw new SvcError("invalid", `the services catalogue: ${place}: ${issue.message}`);
  }
  const services = catalogue.data.blocked_services.map(({ id, name, rules, group }) => ({
    id: id.toLowerCase(),
    name,
    group: group ?? null,
    rules: rules.filter(isBlockingRule),
  }));
  const ids = new Set<string>();
  return services.filter(({ id, rules }) => {
    if (rules.length === 0 || ids.has(id)) return false;
    ids.add(id);
    return true;
  });
}

/**
 * Rules that answer instead of blocking are left out like those that can't be read, and so are patterns
 * and wildcards inside of names: a service is what its names are.
 */
function isBlockingRule(line: string): boolean {
  const parsed = parseRule(line);
  return parsed.kind === "rules" &&
    parsed.rules.every(({ kind, form, exception, badfilter, text }) =>
      kind === "name" && !exception && !badfilter && !PATTERNS.includes(form) &&
      text.lastIndexOf("*") <= 0
    );
}

const PATTERNS: readonly RuleForm[] = ["pattern", "regex"];
