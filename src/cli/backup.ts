import type { Restored } from "../api/mod.ts";
import { ANSWER_BYTES_MAX } from "../client/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { API_HELP, API_OPTIONS, apiClient, asked, harmless } from "./api_access.ts";
import { writeNewFiles } from "./new_file.ts";
import { readOperand, readOptions } from "./options.ts";
import { readSecretFile } from "./secret_file.ts";

/** A whole configuration takes longer than a page; the service itself gives up after 30 s. */
const LIMITS = { timeoutMs: 60_000 } as const;
const PASSPHRASE_OPTION = { "passphrase-file": { type: "string" } } as const;

const BACKUP_HELP = `svc backup [--to FILE] [--passphrase-file FILE] [--api URL]

Takes settings, lists, rules, records, groups, clients, schedules and users of the running service into
one file. Passwords and second factors are in it only under a passphrase, without which it can't be
opened.

  --to FILE          where to, in place of what is there (default: standard output)
  --passphrase-file FILE
                     its first line is the passphrase, of 8 characters or more
${API_HELP}
  --help             this text`;

/** `svc backup`; returns the exit code. */
export async function backup(args: string[]): Promise<number> {
  const options = { ...API_OPTIONS, ...PASSPHRASE_OPTION, to: { type: "string" } } as const;
  const values = readOptions("backup", BACKUP_HELP, args, options);
  if (typeof values === "number") return values;
  const client = await apiClient("backup", values, LIMITS);
  if (typeof client === "number") return client;
  const passphrase = await passphraseOf(values["passphrase-file"]);
  const text = JSON.stringify(await asked(client.call("GET backup", { passphrase })));
  if (values.to === undefined) console.log(text);
  else await writeNewFiles([{ path: values.to, text: `${text}\n`, mode: 0o600 }], true);
  return 0;
}

const RESTORE_HELP = `svc restore FILE [--dry-run] [--passphrase-file FILE] [--api URL]

Puts what a backup has in the place of all settings and resources of the running service, in one change,
and tells what differs. With the passphrase of the backup its users take the place of all users; without
it those who are there keep their passwords, and no others come.

  --dry-run          tells what differs, and changes nothing
  --passphrase-file FILE
                     its first line is the passphrase that the backup was made with
${API_HELP}
  --help             this text`;

/** `svc restore FILE`; returns the exit code. */
export async function restore(args: string[]): Promise<number> {
  const options = {
    ...API_OPTIONS,
    ...PASSPHRASE_OPTION,
    "dry-run": { type: "boolean" },
  } as const;
  const read = readOperand("restore", RESTORE_HELP, args, options, "FILE");
  if (typeof read === "number") return read;
  const { values, operand } = read;
  const client = await apiClient("restore", values, LIMITS);
  if (typeof client === "number") return client;
  const passphrase = await passphraseOf(values["passphrase-file"]);
  const body = await readBackupFile(operand);
  const query = { dry_run: values["dry-run"] ? "true" : undefined };
  try {
    console.log(
      formatRestored(await asked(client.call("POST restore", { query, body, passphrase }))),
    );
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== "invalid") throw error;
    throw new SvcError(error.code, `${operand}: nothing was changed: ${error.message}`);
  }
  return 0;
}

async function passphraseOf(file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : await readSecretFile(file);
}

async function readBackupFile(path: string): Promise<unknown> {
  let text: string;
  try {
    const { size } = await Deno.stat(path);
    if (size > ANSWER_BYTES_MAX) {
      throw new SvcError("invalid", `${path}: it is larger than ${ANSWER_BYTES_MAX} bytes`);
    }
    text = await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw new SvcError("unavailable", `${path}: can't be read: ${messageOf(error)}`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new SvcError("invalid", `${path}: it is no whole JSON text: take another copy of it`);
  }
}

/** What a restoration came to, as lines of text. */
export function formatRestored({ done, counts, items }: Restored): string {
  const differing = Object.values(counts)
    .reduce(
      (sum, { kept: _, ...others }) => sum + Object.values(others).reduce((a, b) => a + b),
      0,
    );
  const lines = [
    ...Object.entries(counts).map(([part, { added, changed, removed, kept, left_out }]) =>
      `${part}: ${added} added, ${changed} changed, ${removed} removed, ${kept} kept` +
      (left_out === 0 ? "" : `, ${left_out} left out: what is secret of them needs the passphrase`)
    ),
    ...items.map(({ kind, type, id, name }) =>
      `  ${kind.replace("_", " ")} ${type}${id === null ? "" : ` ${id}`} ${name}`.trimEnd()
    ),
    ...(differing > items.length ? [`  and ${differing - items.length} more`] : []),
    done ? "restored" : "nothing was changed",
  ];
  return lines.map(harmless).join("\n");
}
