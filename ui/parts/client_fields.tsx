import type { Specs } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { groupOptions } from "./choices.ts";
import { Field, Select, TextField } from "./controls.tsx";
import { type Draft, linesOf } from "./form.tsx";
import { DEFAULT_GROUP } from "./names.ts";

export const NEW_CLIENT: Specs["clients"] = {
  name: "",
  addresses: [],
  ids: [],
  group: DEFAULT_GROUP,
  paused_until: null,
};

/** Lines that somebody ends by hand stay as they are until they are sent. */
export function prepareClient(spec: Specs["clients"]): Specs["clients"] {
  return {
    ...spec,
    addresses: linesOf(spec.addresses.join("\n")),
    ids: linesOf(spec.ids.join("\n")),
  };
}

export function ClientFields({ value, set, problem }: Draft<Specs["clients"]>) {
  return (
    <>
      <TextField
        label={t.common.name}
        error={problem("name")}
        value={value.name}
        onText={(name) => set({ name })}
      />
      <Field label={t.clients.group} error={problem("group")}>
        {(ids) => (
          <Select
            {...ids}
            value={value.group}
            choices={groupOptions()}
            onChange={(group) => set({ group })}
          />
        )}
      </Field>
      <Field
        label={t.clients.addresses}
        hint={t.clients.addressesHint}
        error={problem("addresses")}
      >
        {(ids) => (
          <textarea
            {...ids}
            rows={3}
            spellcheck={false}
            value={value.addresses.join("\n")}
            onInput={(event) => set({ addresses: event.currentTarget.value.split("\n") })}
          />
        )}
      </Field>
      <Field label={t.clients.ids} hint={t.clients.idsHint} error={problem("ids")} optional>
        {(ids) => (
          <textarea
            {...ids}
            rows={2}
            spellcheck={false}
            value={value.ids.join("\n")}
            onInput={(event) => set({ ids: event.currentTarget.value.toLowerCase().split("\n") })}
          />
        )}
      </Field>
    </>
  );
}
