/** Forms of text: Save and Cancel, what is wrong at its field, and who was faster. */
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type ReadonlySignal, useComputed, useSignal } from "@preact/signals";
import { ApiError } from "../data/api.ts";
import { create, replace } from "../data/collections.ts";
import { isReadOnly } from "../data/node.ts";
import type { Collection, Resource, Specs } from "../data/types.ts";
import { call } from "../data/api.ts";
import { mayLeave } from "../router.ts";
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
  /** Where another takes its place, it is shown, unless somebody is typing. */
  readonly initial: S;
  /** `base` is what the fields began with; resolves with `false` where nothing was saved. */
  readonly submit: (value: S, base: S) => Promise<unknown>;
  readonly onCancel?: () => void;
  readonly saveLabel?: string;
  readonly isDanger?: boolean;
  readonly disabled?: boolean;
  /** Fields that stay as they are after saving, such as that of a next one to add. */
  readonly children: (draft: Draft<S>) => ComponentChildren;
  readonly more?: ComponentChildren;
  /** The paths of fields that are shown; what is wrong elsewhere stands above them. */
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
    more,
    warns = true,
    isDanger,
  }: FormProps<S>,
) {
  const value = useSignal(initial);
  const problems = useSignal<readonly { path: string; message: string }[]>([]);
  const trouble = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const base = useSignal(initial);
  const isDirty = useComputed(() => JSON.stringify(value.value) !== JSON.stringify(base.value));
  const ref = useRef<HTMLFormElement>(null);
  useWarning(warns, isDirty, ref);
  const offered = JSON.stringify(initial);
  const taken = useRef(offered);
  useEffect(() => {
    if (isDirty.value || taken.current === offered) return;
    taken.current = offered;
    base.value = initial;
    value.value = initial;
  }, [offered, isDirty.value]);
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
  const elsewhere = problems.value.filter(({ path }) =>
    ![...shown].some((one) => path === one || path.startsWith(`${one}[`))
  );
  const onSubmit = async (event: Event) => {
    event.preventDefault();
    problems.value = [];
    trouble.value = null;
    isBusy.value = true;
    const form = event.currentTarget as HTMLFormElement;
    const sent = value.value;
    try {
      if (await submit(sent, base.value) !== false) base.value = sent;
    } catch (error) {
      if (error instanceof ApiError && error.details.length > 0) problems.value = error.details;
      else trouble.value = errorText(error);
      setTimeout(() => form.querySelector<HTMLElement>("[aria-invalid]")?.focus());
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <form class="form" ref={ref} onSubmit={onSubmit} noValidate>
      {fields}
      {(trouble.value !== null || elsewhere.length > 0) && (
        <p class="problem" role="alert">
          {trouble.value ??
            elsewhere.map(({ path, message }) => path === "" ? message : `${path}: ${message}`)
              .join("; ")}
        </p>
      )}
      {isReadOnly.value && <p class="problem">{t.shell.readOnlyNode}</p>}
      <div class="form-actions">
        {more}
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

/** Forms with something typed that is not saved. */
const unsaved = new Set<HTMLFormElement>();

function askToLeave(): Promise<boolean> {
  return confirm(t.common.unsaved, t.common.unsavedText, t.common.leave);
}

/** Says whether a dialog may close: whoever has typed in it is asked. */
export async function mayCloseDialog(): Promise<boolean> {
  const isTypedIn = Array.from(unsaved).some((form) => form.closest("dialog") !== null);
  return !isTypedIn || await askToLeave();
}

/** Asks before a page with something typed is left. */
function useWarning(
  warns: boolean,
  isDirty: ReadonlySignal<boolean>,
  ref: RefObject<HTMLFormElement | null>,
): void {
  useEffect(() => {
    const form = ref.current;
    if (!warns || form === null) return;
    const note = (dirty: boolean) => {
      if (dirty) unsaved.add(form);
      else unsaved.delete(form);
      mayLeave.value = unsaved.size > 0 ? askToLeave : null;
    };
    const stop = isDirty.subscribe(note);
    return () => {
      stop();
      note(false);
    };
  }, []);
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
  const submit = async (value: Specs[C]) => {
    const spec = prepare?.(value) ?? value;
    try {
      const made = base.value === null
        ? await create(collection, spec, { said: said(spec) })
        : await replace(collection, base.value, spec, { said: said(spec) });
      mayLeave.value = null;
      onDone(made);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 412)) throw error;
      theirs.value = await call<Resource<C>>("GET", `${collection}/${base.value!.id}`);
      return false;
    }
    return true;
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
