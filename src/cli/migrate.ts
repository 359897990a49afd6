import type { Migrated } from "../api/mod.ts";
import { API_OPTIONS, apiClient, asked } from "./api_access.ts";
import { harmless } from "./harmless.ts";
import { writeNewFiles } from "./new_file.ts";
import { readOperand, wrongUsage } from "./options.ts";
import { readPassword } from "./password.ts";

const EXIT_LEFT_BEHIND = 1;
/** The service reads for 20 s and changes for some; it gives up by itself after 30 s. */
const LIMITS = { timeoutMs: 60_000 } as const;
/** A long name makes no column of a hundred blanks for the others. */
const NAME_WIDTH_MAX = 60;

const HELP = `svc migrate adguard|pihole --from URL [--dry-run] [--user NAME] [--password-file FILE]
            [--output FILE] [--to URL] [--token-file FILE]

Adds what AdGuard Home 0.107 or Pi-hole 6 has to the running service, in one change: lists, rules,
groups, clients, blocked services, safe search, records, access and settings. Nothing is changed there,
nothing that is here is changed either, and it may be run again. Prints a table of all that was found,
and the part of svc.toml for what belongs into the file.

  --from URL         where its web interface is, as this service reaches it
  --user NAME        the user of AdGuard Home
  --password-file FILE
                     its first line is the password (default: asked for in a terminal, else none)
  --dry-run          prints the same, and changes nothing
  --output FILE      the part of svc.toml goes into this new file
  --to URL           the service's API (default http://127.0.0.1:8053)
  --token-file FILE  its first line is the API's token
  --help             this text

Exit code: 0 all of it was taken or there already; 1 something can't be taken, or it failed and nothing
was changed; 2 wrong usage.`;

const { api: _, ...TOKEN_OPTION } = API_OPTIONS;
const OPTIONS = {
  ...TOKEN_OPTION,
  "from": { type: "string" },
  "to": { type: "string" },
  "user": { type: "string" },
  "password-file": { type: "string" },
  "dry-run": { type: "boolean" },
  "output": { type: "string" },
} as const;

/** `svc migrate PRODUCT`; returns the exit code. */
export async function migrate(args: string[]): Promise<number> {
  const read = readOperand("migrate", HELP, args, OPTIONS, "product: adguard or pihole");
  if (typeof read === "number") return read;
  const { values, operand: product } = read;
  if (product !== "adguard" && product !== "pihole") {
    return wrongUsage("migrate", `${JSON.stringify(product)} is no product: adguard or pihole`);
  }
  const { from: url, to, user, output } = values;
  if (url === undefined) return wrongUsage("migrate", "--from URL says where it is");
  if (product === "pihole" && user !== undefined) {
    return wrongUsage("migrate", "--user is for adguard: Pi-hole has a password alone");
  }
  const tokenFile = values["token-file"];
  const client = await apiClient(
    "migrate",
    {
      ...(to !== undefined && { api: to }),
      ...(tokenFile !== undefined && { "token-file": tokenFile }),
    },
    LIMITS,
    "--to",
  );
  if (typeof client === "number") return client;
  const mayAsk = product === "pihole" || user !== undefined;
  const password = await readPassword(values["password-file"], mayAsk ? url : null);
  const query = { dry_run: values["dry-run"] ? "true" : undefined };
  const body = { product, url, user: user ?? null, password };
  const migrated = await asked(client.call("POST migrate", { query, body }));
  console.log(formatMigrated(migrated));
  if (output === undefined) console.log(`\n${formatFragment(migrated)}`);
  else await writeNewFiles([{ path: output, text: migrated.fragment, mode: 0o644 }]);
  return migrated.counts.not_possible === 0 ? 0 : EXIT_LEFT_BEHIND;
}

/** What a migration came to, as a table and a line that counts it. */
export function formatMigrated({ done, source, counts, items }: Migrated): string {
  const rows = items.map(({ outcome, type, name, detail }) => ({
    cells: [words(outcome), words(type), name],
    detail,
  }));
  const widthOf = (column: number, max: number) =>
    Math.max(0, ...rows.map(({ cells }) => cells[column].length).filter((one) => one <= max));
  const widths = [widthOf(0, 16), widthOf(1, 16), widthOf(2, NAME_WIDTH_MAX)];
  const lines = rows.map(({ cells, detail }) =>
    [...cells.map((cell, i) => cell.padEnd(widths[i])), detail ?? ""].join("  ").trimEnd()
  );
  const { added, there_already, adapted, not_possible } = counts;
  const sum = `${source}: ${added} added, ${there_already} there already, ${adapted} adapted, ` +
    `${not_possible} not possible`;
  return [...lines, sum, ...(done ? [] : ["nothing was changed"])].map(harmless).join("\n");
}

function formatFragment({ fragment }: Migrated): string {
  return fragment.trimEnd().split("\n").map(harmless).join("\n");
}

function words(text: string): string {
  return text.replaceAll("_", " ");
}
