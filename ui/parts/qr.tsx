import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";

/** A QR code; black on white whatever the theme, for cameras. */
export function Qr({ text, label }: { text: string; label: string }) {
  const cells = useSignal<readonly (readonly boolean[])[]>([]);
  useEffect(() => {
    let isOver = false;
    void import("uqr").then(({ encode }) => {
      if (!isOver) cells.value = encode(text, { ecc: "M", border: 2 }).data;
    });
    return () => {
      isOver = true;
    };
  }, [text]);
  const size = cells.value.length;
  if (size === 0) return <div class="qr" />;
  const path = cells.value.flatMap((row, y) =>
    row.map((isDark, x) => isDark ? `M${x} ${y}h1v1h-1z` : "")
  ).join("");
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={`QR: ${label}`}
      shape-rendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
