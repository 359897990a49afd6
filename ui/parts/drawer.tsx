import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { t } from "../text/mod.ts";
import { Icon } from "./icon.tsx";

const PHONE = "(max-width: 639px)";

/** More about a row, beside the list; over it on a phone. Esc closes it, the focus goes back. */
export function Drawer(
  { title, onClose, children }: {
    title: ComponentChildren;
    onClose: () => void;
    children: ComponentChildren;
  },
) {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    const isSheet = matchMedia(PHONE).matches;
    if (isSheet) ref.current?.querySelector<HTMLElement>(".drawer-close")?.focus();
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      onClose();
    };
    document.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("keydown", onKey);
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <>
      <div class="drawer-shade" onClick={onClose} />
      <aside class="drawer" aria-label={t.common.details} ref={ref}>
        <header class="drawer-head">
          <h2>{title}</h2>
          <button
            type="button"
            class="button quiet only-icon drawer-close"
            aria-label={t.common.close}
            onClick={onClose}
          >
            <Icon name="x" />
          </button>
        </header>
        <div class="drawer-body">{children}</div>
      </aside>
    </>
  );
}
