/** Many rows of one height, of which those in sight are drawn. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { isPrinting } from "./printing.ts";

/** Rows drawn above and below what is in sight. */
const BEYOND = 8;
/** Rows that two pages of paper take, from the first one in sight on. */
const PAPER_ROWS = 96;

export function VirtualRows<R>(
  {
    rows,
    total,
    rowPx,
    keyOf,
    row,
    label,
    active,
    onActive,
    onOpen,
    onEnd,
    onScroll,
    head,
    columns,
  }: {
    rows: readonly R[];
    /** How many there are, where that is known. */
    total: number | null;
    rowPx: number;
    keyOf: (row: R) => string;
    row: (row: R) => ComponentChildren;
    label: string;
    active: number;
    onActive: (index: number) => void;
    onOpen: (index: number) => void;
    /** The last rows come in sight. */
    onEnd?: () => void;
    onScroll?: (isAtTop: boolean) => void;
    head: ComponentChildren;
    columns: number;
  },
) {
  const ref = useRef<HTMLDivElement>(null);
  const seen = useSignal({ top: 0, height: 800 });
  useEffect(() => {
    const element = ref.current!;
    const look = () => {
      seen.value = { top: element.scrollTop, height: element.clientHeight };
    };
    look();
    const resizing = new ResizeObserver(look);
    resizing.observe(element);
    return () => resizing.disconnect();
  }, []);
  const { top, height } = seen.value;
  const isPaper = isPrinting.value;
  const inSight = Math.floor(top / rowPx);
  const first = isPaper ? inSight : Math.max(0, inSight - BEYOND);
  const end = isPaper ? inSight + PAPER_ROWS : Math.ceil((top + height) / rowPx) + BEYOND;
  const last = Math.min(rows.length, end);
  useEffect(() => {
    if (!isPrinting.peek() && last >= rows.length - BEYOND) onEnd?.();
  }, [last, rows.length]);
  const goTo = (index: number) => {
    const to = Math.min(rows.length - 1, Math.max(0, index));
    if (to < 0) return;
    onActive(to);
    const element = ref.current!;
    const headPx = element.querySelector<HTMLElement>(".rows-head")?.offsetHeight ?? 0;
    const y = to * rowPx;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + rowPx + headPx > element.scrollTop + element.clientHeight) {
      element.scrollTop = y + rowPx + headPx - element.clientHeight;
    }
  };
  const page = Math.max(1, Math.floor(height / rowPx) - 1);
  const onKey = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey) return;
    const to = {
      ArrowDown: active + 1,
      j: active + 1,
      ArrowUp: active - 1,
      k: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      goTo(to);
    } else if ((event.key === "Enter" || event.key === " ") && rows[active] !== undefined) {
      event.preventDefault();
      onOpen(active);
    }
  };
  return (
    <div
      class="virtual"
      role="grid"
      tabIndex={0}
      ref={ref}
      aria-label={label}
      aria-rowcount={total ?? -1}
      aria-colcount={columns}
      aria-activedescendant={rows[active] === undefined ? undefined : `row-${active}`}
      onKeyDown={onKey}
      onScroll={(event) => {
        const { scrollTop, clientHeight } = event.currentTarget;
        seen.value = { top: scrollTop, height: clientHeight };
        onScroll?.(scrollTop < rowPx / 2);
      }}
    >
      <div class="rows-head" role="row" aria-rowindex={1}>{head}</div>
      <div class="rows-body" role="presentation" style={{ height: `${rows.length * rowPx}px` }}>
        {rows.slice(first, last).map((one, i) => {
          const index = first + i;
          return (
            <div
              key={keyOf(one)}
              id={`row-${index}`}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={index === active}
              class="virtual-row"
              style={{ transform: `translateY(${index * rowPx}px)`, height: `${rowPx}px` }}
              onClick={() => {
                onActive(index);
                onOpen(index);
              }}
            >
              {row(one)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
