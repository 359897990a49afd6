import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../text/mod.ts";
import { Icon } from "./icon.tsx";
import { useMedia } from "./use_media.ts";

/** Where it covers the page: the width is that of `layers.css`. */
const COVERS = "screen and (max-width: 899px)";

/** More about a row, beside the list or over it. Esc closes it, the focus goes back. */
export function Drawer(
  { title, onClose, children }: {
    title: ComponentChildren;
    onClose: () => void;
    children: ComponentChildren;
  },
) {
  const ref = useRef<HTMLDivElement>(null);
  const before = useRef(document.activeElement);
  const isSheet = useMedia(COVERS);
  // With what is drawn, not behind a paint: a key may come at once, and none is to go to what is
  // covered, or to nothing. First, so that what has the focus back is within reach by then.
  useLayoutEffect(() => {
    if (!isSheet) return;
    ref.current!.querySelector<HTMLElement>(".drawer-close")?.focus();
    return shutOthers(ref.current!);
  }, [isSheet]);
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      onClose();
    };
    document.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("keydown", onKey);
      const { current } = before;
      if (current instanceof HTMLElement && current.isConnected) current.focus();
    };
  }, []);
  return (
    <>
      <div class="drawer-shade" onClick={onClose} />
      <div
        class="drawer"
        aria-label={t.common.details}
        role={isSheet ? "dialog" : "complementary"}
        aria-modal={isSheet || undefined}
        ref={ref}
      >
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
      </div>
    </>
  );
}

/** Leaves what an element covers out of reach, now or later, but no messages; returns what ends it. */
function shutOthers(element: HTMLElement): () => void {
  const shut = () => {
    for (let one = element; one !== document.body; one = one.parentElement!) {
      added.observe(one.parentElement!, { childList: true });
      for (const other of one.parentElement!.children) {
        if (!(other instanceof HTMLElement) || other === one) continue;
        if (!other.matches(".drawer-shade, .toasts, dialog")) other.inert = true;
      }
    }
  };
  const added = new MutationObserver(shut);
  shut();
  return () => {
    added.disconnect();
    // Nothing else shuts anything.
    for (const other of document.querySelectorAll<HTMLElement>("[inert]")) other.inert = false;
  };
}
