import { useSignal } from "@preact/signals";
import { keptOf } from "../data/collections.ts";
import { groupsUsing, useListIn } from "../data/list_use.ts";
import type { Resource } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Name } from "./basics.tsx";
import { ResourceDialog } from "./collection.tsx";
import { Check, Field, TextField } from "./controls.tsx";
import { attempt } from "./errors.tsx";
import { DEFAULT_GROUP } from "./names.ts";

export interface NewList {
  readonly name: string;
  readonly url: string;
}

/** A list and the groups that use it: it would block nothing without. */
export function ListDialog(
  { resource, initial, onClose }: {
    resource: Resource<"lists"> | null;
    initial: NewList;
    onClose: () => void;
  },
) {
  /** What was chosen here; until then the list stays where it is. */
  const chosen = useSignal<readonly string[] | null>(resource === null ? [DEFAULT_GROUP] : null);
  const groups = chosen.value ?? groupsUsing(resource!.id).map(({ id }) => id);
  return (
    <ResourceDialog
      title={resource === null ? t.lists.add : t.lists.edit}
      collection="lists"
      resource={resource}
      initial={{ ...initial, enabled: true, comment: "", managed_by: "api" }}
      nameOf={({ name }) => name}
      onClose={onClose}
      onDone={({ id }) => {
        const { value } = chosen;
        if (value !== null) void attempt(() => useListIn(id, value));
      }}
      prepare={(spec) => ({
        ...spec,
        name: spec.name.trim() || nameFrom(spec.url ?? spec.path ?? ""),
      })}
    >
      {({ value, set, problem }) => (
        <>
          {value.path === undefined
            ? (
              <Field label={t.lists.url} hint={t.lists.urlHint} error={problem("url")}>
                {(ids) => (
                  <input
                    {...ids}
                    type="url"
                    class="mono"
                    value={value.url ?? ""}
                    placeholder="https://"
                    onInput={(event) => set({ url: event.currentTarget.value.trim() })}
                  />
                )}
              </Field>
            )
            : (
              <Field label={t.lists.path} error={problem("path")}>
                {(ids) => <input {...ids} class="mono" value={value.path} disabled />}
              </Field>
            )}
          <TextField
            label={t.common.name}
            error={problem("name")}
            value={value.name}
            placeholder={nameFrom(value.url ?? "")}
            onText={(name) => set({ name })}
          />
          <Check
            isOn={value.allows === true}
            label={t.lists.allowsHint}
            onChange={(allows) => set({ allows })}
          />
          <fieldset class="field">
            <legend>{t.lists.forGroups}</legend>
            {(keptOf("groups").items.value ?? []).map(({ id, spec }) => (
              <Check
                key={id}
                isOn={groups.includes(id)}
                label={<Name text={spec.name} />}
                onChange={(on) =>
                  chosen.value = on ? [...groups, id] : groups.filter((one) => one !== id)}
              />
            ))}
          </fieldset>
        </>
      )}
    </ResourceDialog>
  );
}

/** What a list is called that nobody named: the end of its address. */
function nameFrom(url: string): string {
  const { hostname, pathname } = URL.parse(url) ?? { hostname: "", pathname: "" };
  const file = pathname.split("/").findLast((part) => part !== "") ?? "";
  return file.replace(/\.\w+$/, "") || hostname;
}
