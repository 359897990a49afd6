import { signal } from "@preact/signals";

/** The page is on its way to paper, where nothing scrolls and nothing is pressed. */
export const isPrinting = signal(false);

addEventListener("beforeprint", () => isPrinting.value = true);
addEventListener("afterprint", () => isPrinting.value = false);
