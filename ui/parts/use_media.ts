import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";

/** Whether a media query holds, now and whenever that changes. */
export function useMedia(text: string): boolean {
  const holds = useSignal(matchMedia(text).matches);
  useEffect(() => {
    const list = matchMedia(text);
    const onChange = () => holds.value = list.matches;
    list.addEventListener("change", onChange);
    onChange(); // It may have changed since it was drawn.
    return () => list.removeEventListener("change", onChange);
  }, [text]);
  return holds.value;
}
