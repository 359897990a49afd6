/** The whole configuration as a file, and what comes of putting one in the place of what is there. */
import { useSignal } from "@preact/signals";
import { call } from "../data/api.ts";
import { reloadAll } from "../data/collections.ts";
import { isReadOnly, readStatus, status } from "../data/node.ts";
import { isAdmin } from "../data/session.ts";
import type { Restored } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Button, Card, Name } from "./basics.tsx";
import { Field } from "./controls.tsx";
import { confirm } from "./dialog.tsx";
import { attempt } from "./errors.tsx";
import { fullTime, number } from "./format.ts";
import { NewPassword } from "./new_password.tsx";
import { Pieces } from "./pieces.tsx";
import { Table } from "./table.tsx";
import { toast } from "./toasts.tsx";

/** Sealing and opening take their time on a small board. */
const ANSWER_MS_MAX = 120_000;
const KINDS = ["added", "changed", "removed", "left_out", "kept"] as const;

/** A header holds no other letters, and an address of a request may hold no secret. */
function passphraseHeader(passphrase: string): Readonly<Record<string, string>> {
  return passphrase === "" ? {} : { "svc-passphrase": encodeURIComponent(passphrase) };
}

export function BackupAndRestore({ onRestored }: { onRestored: () => Promise<void> }) {
  if (!isAdmin.value) return null;
  return (
    <>
      <Download />
      <Restore onRestored={onRestored} />
    </>
  );
}

function Download() {
  const passphrase = useSignal("");
  const isBusy = useSignal(false);
  const download = async () => {
    isBusy.value = true;
    await attempt(async () => {
      const backup = await call<{ made_at: string }>("GET", "backup", {
        headers: passphraseHeader(passphrase.value),
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      const day = backup.made_at.slice(0, 10);
      save(JSON.stringify(backup), `svc-${status.value?.node ?? "backup"}-${day}.json`);
      passphrase.value = "";
    });
    isBusy.value = false;
  };
  return (
    <Card title={t.backup.title} id="backup">
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void download();
        }}
      >
        <p class="muted">{t.backup.lead}</p>
        <NewPassword
          label={t.backup.passphrase}
          hint={t.backup.passphraseHint}
          optional
          value={passphrase.value}
          onInput={(text) => passphrase.value = text}
        />
        <p class="hint">{t.backup.daily}</p>
        <div class="form-actions">
          <Button
            kind="primary"
            type="submit"
            icon="download"
            label={t.backup.download}
            isBusy={isBusy.value}
          />
        </div>
      </form>
    </Card>
  );
}

/** Has the browser keep a text as a file. */
function save(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  URL.revokeObjectURL(url);
}

interface Chosen {
  readonly backup: unknown;
  readonly madeAt: string;
  readonly program: string;
  readonly isSealed: boolean;
}

/** What a file says of itself; the service reads the rest. */
async function readFile(file: File): Promise<Chosen | null> {
  try {
    const backup = JSON.parse(await file.text());
    if (backup?.format !== "svc backup") return null;
    return {
      backup,
      madeAt: fullTime(new Date(backup.made_at)),
      program: String(backup.program),
      isSealed: backup.secrets !== null,
    };
  } catch {
    return null;
  }
}

function Restore({ onRestored }: { onRestored: () => Promise<void> }) {
  const chosen = useSignal<Chosen | "none" | null>(null);
  const passphrase = useSignal("");
  const found = useSignal<Restored | null>(null);
  const isBusy = useSignal(false);
  const ask = async (dry_run: boolean) => {
    const { backup } = chosen.value as Chosen;
    return await call<Restored>("POST", "restore", {
      params: { dry_run },
      body: backup,
      headers: passphraseHeader(passphrase.value),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
  };
  const compare = async () => {
    isBusy.value = true;
    await attempt(async () => found.value = await ask(true));
    isBusy.value = false;
  };
  const choose = async (file: File | undefined) => {
    found.value = null;
    passphrase.value = "";
    chosen.value = file === undefined ? null : await readFile(file) ?? "none";
    // One that is sealed is compared when its passphrase is there, or is not to be.
    if (chosen.value !== null && chosen.value !== "none" && !chosen.value.isSealed) await compare();
  };
  const restore = async () => {
    const { confirmTitle, confirmText } = t.backup;
    if (!await confirm(confirmTitle, confirmText, t.backup.restore)) return;
    isBusy.value = true;
    const done = await attempt(() => ask(false));
    isBusy.value = false;
    if (!done) return;
    toast(t.backup.done);
    found.value = null;
    chosen.value = null;
    await attempt(async () => {
      await Promise.all([onRestored(), reloadAll(), readStatus()]);
    });
  };
  return (
    <Card title={t.backup.restore} id="restore">
      <div class="form">
        <p class="muted">{t.backup.restoreLead}</p>
        <Field
          label={t.backup.file}
          error={chosen.value === "none" ? t.backup.noBackup : undefined}
        >
          {(ids) => (
            <input
              {...ids}
              type="file"
              accept=".json,application/json"
              key={chosen.value === null ? "none" : "one"}
              onChange={(event) => void choose(event.currentTarget.files?.[0])}
            />
          )}
        </Field>
        {chosen.value !== null && chosen.value !== "none" && (
          <>
            <p>{t.backup.madeAt(chosen.value.madeAt, chosen.value.program)}</p>
            {chosen.value.isSealed && (
              <form
                class="form"
                onSubmit={(event) => {
                  event.preventDefault();
                  void compare();
                }}
              >
                <Field label={t.backup.passphrase} hint={t.backup.openWith} optional>
                  {(ids) => (
                    <input
                      {...ids}
                      type="password"
                      autocomplete="off"
                      value={passphrase.value}
                      onInput={(event) => {
                        passphrase.value = event.currentTarget.value;
                        found.value = null;
                      }}
                    />
                  )}
                </Field>
                <div class="form-actions">
                  <Button type="submit" label={t.backup.compare} isBusy={isBusy.value} />
                </div>
              </form>
            )}
          </>
        )}
        {found.value !== null && (
          <>
            <Report of={found.value} />
            {isReadOnly.value && <p class="problem">{t.shell.readOnlyNode}</p>}
            <div class="form-actions">
              <Button
                kind="danger"
                icon="undo-2"
                label={t.backup.restore}
                isBusy={isBusy.value}
                disabled={isReadOnly.value || differing(found.value) === 0}
                onClick={() => void restore()}
              />
            </div>
          </>
        )}
      </div>
    </Card>
  );
}

function differing({ counts }: Restored): number {
  return Object.values(counts)
    .reduce((sum, one) => sum + one.added + one.changed + one.removed + one.left_out, 0);
}

function Report({ of }: { of: Restored }) {
  const count = differing(of);
  if (count === 0) return <p role="status">{t.backup.same}</p>;
  const kinds: Readonly<Record<string, string>> = t.backup.kinds;
  const types: Readonly<Record<string, string>> = t.audit.types;
  const lacks: Readonly<Record<string, string>> = t.backup.lacks;
  return (
    <div class="restored" role="status">
      <h3>{t.backup.differs}</h3>
      <Table
        caption={t.backup.differs}
        rows={Object.entries(of.counts)}
        keyOf={([part]) => part}
        isMuted={([, one]) => one.added + one.changed + one.removed + one.left_out === 0}
        columns={[
          {
            key: "part",
            title: t.backup.columns.part,
            card: "title",
            cell: ([part]) => (t.pages as Readonly<Record<string, string>>)[part] ?? part,
          },
          ...KINDS.map((kind) => ({
            key: kind,
            title: t.backup.columns[kind],
            align: "end" as const,
            cell: ([, one]: [string, Restored["counts"][string]]) => number(one[kind]),
          })),
        ]}
      />
      <Pieces of={of.items} step={20}>
        {(some) => (
          <ul class="rows small">
            {some.map(({ type, id, name, kind }) => (
              <li key={`${type} ${id}`} class="line">
                <span class="muted">{kinds[kind] ?? kind}</span>
                <span>{types[type] ?? type}</span>
                <Name text={name} />
                {kind === "left_out" && <span class="muted">{lacks[type] ?? ""}</span>}
              </li>
            ))}
          </ul>
        )}
      </Pieces>
      {count > of.items.length && (
        <p class="muted small">{t.backup.others(number(count - of.items.length))}</p>
      )}
    </div>
  );
}
