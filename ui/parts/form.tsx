/** Forms of text: Save and Cancel, what is wrong at its field, and who was faster. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type ReadonlySignal, useComputed, useSignal } from "@preact/signals";
import { ApiError, call, type FieldProblem } from "../data/api.ts";
import { create, replace } from "../data/collections.ts";
import { isReadOnly } from "../data/node.ts";
import type { Collection, Resource, Specs } from "../data/types.ts";
import { askBefore } from "../router.ts";
import { t } from "../text/mod.ts";
import { Button } from "./basics.tsx";
import { confirm } from "./dialog.tsx";
import { errorText } from "./error_text.ts";

/** What a form's fields work with. */
export interface Draft<S> {
  readonly value: S;
  readonly set: (changes: Partial<S>) => void;
  /** What is wrong with a field: `windows[0].end`, or what begins with it. */
  readonly problem: (path: string) => string | undefined;
}

interface FormProps<S> {
  readonly initial: S;
  /** `settle` says that it is saved, where what follows leads away. */
  readonly submit: (value: S, settle: () => void) => Promise<unknown>;
  readonly onCancel?: () => void;
  readonly saveLabel?: string;
  readonly isDanger?: boolean;
  readonly disabled?: boolean;
  /** The fields. */
  readonly children: (draft: Draft<S>) => ComponentChildren;
  /** Asks before what is typed is left. */
  readonly warns?: boolean;
}

export function Form<S extends object>(
  {
    initial,
    submit,
    onCancel,
    saveLabel,
    disabled = false,
    children,
    warns = true,
    isDanger,
  }: FormProps<S>,
) {
  const value = useSignal(initial);
  const problems = useSignal<readonly FieldProblem[]>([]);
  const trouble = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const isDirty = useComputed(() => JSON.stringify(value.value) !== JSON.stringify(initial));
  const settle = useWarning(warns, isDirty);
  const shown = new Set<string>();
  const draft: Draft<S> = {
    value: value.value,
    set: (changes) => value.value = { ...value.value, ...changes },
    problem: (path) => {
      shown.add(path);
      return problems.value.find((one) => one.path === path || one.path.startsWith(`${path}[`))
        ?.message;
    },
  };
  const fields = children(draft);
  const onSubmit = async (event: Event) => {
    event.preventDefault();
    problems.value = [];
    trouble.value = null;
    isBusy.value = true;
    const form = event.currentTarget as HTMLFormElement;
    try {
      await submit(value.value, settle);
    } catch (error) {
      if (error instanceof ApiError && error.details.length > 0) problems.value = error.details;
      else trouble.value = errorText(error);
      setTimeout(() => form.querySelector<HTMLElement>("[aria-invalid]")?.focus());
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <form class="form" onSubmit={onSubmit} noValidate>
      {fields}
      <Elsewhere trouble={trouble.value} problems={problems} shown={shown} />
      {isReadOnly.value && <p class="problem">{t.shell.readOnlyNode}</p>}
      <div class="form-actions">
        {onCancel !== undefined && <Button label={t.common.cancel} onClick={onCancel} />}
        <Button
          kind={isDanger ? "danger" : "primary"}
          type="submit"
          label={saveLabel ?? t.common.save}
          isBusy={isBusy.value}
          disabled={disabled || isReadOnly.value}
        />
      </div>
    </form>
  );
}

/** Asks before something typed is left; returns what ends that: it is saved. */
function useWarning(warns: boolean, isDirty: ReadonlySignal<boolean>): () => void {
  const end = useRef(() => {});
  useEffect(() => {
    if (!warns) return;
    const ask = () => confirm(t.common.unsaved, t.common.unsavedText, t.common.leave);
    const stop = isDirty.subscribe((dirty) => {
      end.current();
      end.current = dirty ? askBefore(ask) : () => {};
    });
    return () => {
      stop();
      end.current();
    };
  }, []);
  return () => end.current();
}

/** What is wrong with no field that is shown; drawn behind them, which is when these are known. */
function Elsewhere(
  { trouble, problems, shown }: {
    trouble: string | null;
    problems: ReadonlySignal<readonly FieldProblem[]>;
    shown: ReadonlySet<string>;
  },
) {
  const elsewhere = problems.value.filter(({ path }) =>
    ![...shown].some((one) => path === one || path.startsWith(`${one}[`))
  );
  if (trouble === null && elsewhere.length === 0) return null;
  return (
    <p class="problem" role="alert">
      {trouble ??
        elsewhere.map(({ path, message }) => path === "" ? message : `${path}: ${message}`)
          .join("; ")}
    </p>
  );
}

/** A form of one resource: makes it or replaces it, and asks where somebody else was faster. */
export function ResourceForm<C extends Collection>(
  { collection, resource, initial, said, onDone, onCancel, children, prepare, saveLabel }: {
    collection: C;
    /** `null`: it is to be made. */
    resource: Resource<C> | null;
    initial: Specs[C];
    said: (spec: Specs[C]) => string;
    onDone: (made: Resource<C>) => void;
    onCancel: () => void;
    children: (draft: Draft<Specs[C]>) => ComponentChildren;
    /** What is sent of what was typed. */
    prepare?: (spec: Specs[C]) => Specs[C];
    saveLabel?: string;
  },
) {
  const base = useSignal(resource);
  const theirs = useSignal<Resource<C> | null>(null);
  const turn = useSignal(0);
  const start = useSignal(initial);
  const submit = async (value: Specs[C], settle: () => void) => {
    const spec = prepare?.(value) ?? value;
    try {
      const made = base.value === null
        ? await create(collection, spec, { said: said(spec) })
        : await replace(collection, base.value, spec, { said: said(spec) });
      settle();
      onDone(made);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 412)) throw error;
      theirs.value = await call<Resource<C>>("GET", `${collection}/${base.value!.id}`);
    }
  };
  const keepMine = () => {
    base.value = theirs.value; // The next save replaces theirs.
    theirs.value = null;
  };
  const takeTheirs = () => {
    base.value = theirs.value;
    start.value = theirs.value!.spec;
    theirs.value = null;
    turn.value++;
  };
  return (
    <>
      {theirs.value !== null && (
        <div class="error-box" role="alert">
          <p>{t.common.changedMeanwhile}</p>
          <Button small label={t.common.keepMine} onClick={keepMine} />
          <Button small label={t.common.takeTheirs} onClick={takeTheirs} />
        </div>
      )}
      <Form
        key={turn.value}
        initial={start.value}
        submit={submit}
        onCancel={onCancel}
        {...(saveLabel !== undefined && { saveLabel })}
      >
        {children}
      </Form>
    </>
  );
}

/** Lines of a text area as a list, without what is empty. */
export function linesOf(text: string): string[] {
  return text.split(/[\n,]/).map((line) => line.trim()).filter((line) => line !== "");
}
