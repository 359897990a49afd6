import type { IconName } from "./icon_names.ts";

/** Made by the build, as JSON. */
declare const ICON_PATHS: string;

const PATHS: Readonly<Record<IconName, string>> = JSON.parse(ICON_PATHS);

/** A picture beside a word: it says nothing by itself. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" width={size} height={size} aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
