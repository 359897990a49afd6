/** What is chosen from: groups, clients, schedules, each as options. */
import { computed } from "@preact/signals";
import { keptOf } from "../data/collections.ts";
import { t } from "../text/mod.ts";
import { visible } from "./format.ts";
import type { PickOption } from "./picker.tsx";

/** Made once, for each row of a long list has them. */
const groups = computed(() =>
  (keptOf("groups").items.value ?? [])
    .map(({ id, spec }) => ({ value: id, label: visible(spec.name) }))
);

export function groupOptions(): readonly { value: string; label: string }[] {
  return groups.value;
}

export function clientOptions(): PickOption[] {
  return (keptOf("clients").items.value ?? []).map(({ id, spec }) => ({
    value: id,
    label: spec.name,
    more: [...spec.addresses, ...spec.ids][0] ?? "",
  }));
}

/** Off, always, or by one of the schedules. */
export function timeOptions(withOff: boolean): { value: string; label: string }[] {
  return [
    ...(withOff ? [{ value: "off", label: t.common.off }] : []),
    { value: "always", label: t.groups.always },
    ...(keptOf("schedules").items.value ?? [])
      .map(({ id, spec }) => ({ value: id, label: visible(spec.name) })),
  ];
}

/** Everybody, a group, or a client: for whom a rule is. */
export function whomOptions(): PickOption[] {
  return [
    { value: "", label: t.panel.everybody },
    ...groupOptions().map(({ value, label }) => ({ value, label: t.panel.group(label) })),
    ...clientOptions(),
  ];
}
