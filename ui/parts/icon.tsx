import { h } from "preact";
import type { IconName } from "./icon_names.ts";

declare const ICON_NODES: Readonly<
  Record<IconName, readonly (readonly [string, Readonly<Record<string, string>>])[]>
>;

/** A picture beside a word: it says nothing by itself. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 24 24"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {ICON_NODES[name].map(([tag, attributes], i) => h(tag, { ...attributes, key: i }))}
    </svg>
  );
}
