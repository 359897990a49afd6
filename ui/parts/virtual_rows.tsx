/** Many rows of one height, of which those in sight are drawn. */
import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { batch, type Signal, useSignal } from "@preact/signals";
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
    onOpen,
    onMark,
    onEnd,
    onScroll,
    onMove,
    head,
    columns,
    reuses = false,
  }: {
    rows: readonly R[];
    /** How many there are, where that is known. */
    total: number | null;
    rowPx: number;
    keyOf: (row: R) => string;
    row: (row: R) => ComponentChildren;
    label: string;
    active: Signal<number>;
    onOpen: (index: number) => void;
    /** Space marks; left out: it opens as Enter does. */
    onMark?: ((index: number) => void) | undefined;
    /** The last rows come in sight. */
    onEnd?: () => void;
    onScroll?: (isAtTop: boolean) => void;
    /** Somebody went to a row by keys; `null`: and left. */
    onMove?: (index: number | null) => void;
    head: ComponentChildren;
    columns: number;
    /** Rows keep nothing of their own, so that one's nodes can show another. */
    reuses?: boolean;
  },
) {
  const ref = useRef<HTMLDivElement>(null);
  const headPx = useRef(0);
  const seen = useSignal({ top: 0, height: 800 });
  useEffect(() => {
    const element = ref.current!;
    const look = () => {
      headPx.current = element.querySelector<HTMLElement>(".rows-head")?.offsetHeight ?? 0;
      const { scrollTop: top, clientHeight: height } = element;
      const { top: topBefore, height: heightBefore } = seen.peek();
      if (top !== topBefore || height !== heightBefore) seen.value = { top, height };
    };
    look();
    const resizing = new ResizeObserver(look);
    resizing.observe(element);
    return () => resizing.disconnect();
  }, []);
  const { top, height } = seen.value;
  const isPaper = isPrinting.value;
  const inSight = Math.floor(top / rowPx);
  // Always as many, so that the nodes of a row that goes are those of the one that comes.
  const places = Math.ceil(height / rowPx) + 1 + 2 * BEYOND;
  const least = Math.max(0, Math.min(inSight - BEYOND, rows.length - places));
  const first = isPaper ? inSight : least;
  const last = Math.min(rows.length, first + (isPaper ? PAPER_ROWS : places));
  useLayoutEffect(() => {
    if (!isPrinting.peek() && last >= rows.length - BEYOND) onEnd?.();
  }, [last, rows.length]);
  const goTo = (index: number) => {
    const to = Math.min(rows.length - 1, Math.max(0, index));
    if (to < 0) return;
    // As they were seen last: to ask the element has the whole laid out.
    const { top, height } = seen.peek();
    const y = to * rowPx;
    const below = y + rowPx + headPx.current - height;
    batch(() => {
      active.value = to;
      onMove?.(to);
      if (y < top) scrollTo(y);
      else if (below > top) scrollTo(below);
    });
  };
  /** Draws what comes in sight with what else has changed, not once more when the scroll is told. */
  const scrollTo = (top: number) => {
    ref.current!.scrollTop = top;
    seen.value = { top, height };
  };
  const page = Math.max(1, Math.floor(height / rowPx) - 1);
  const onKey = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey) return;
    const to = {
      ArrowDown: active.value + 1,
      j: active.value + 1,
      ArrowUp: active.value - 1,
      k: active.value - 1,
      PageDown: active.value + page,
      PageUp: active.value - page,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      goTo(to);
    } else if ((event.key === "Enter" || event.key === " ") && rows[active.value] !== undefined) {
      event.preventDefault();
      const act = event.key === " " ? onMark ?? onOpen : onOpen;
      act(active.value);
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
      aria-activedescendant={rows[active.value] === undefined ? undefined : `row-${active.value}`}
      onKeyDown={onKey}
      onBlur={() => onMove?.(null)}
      onScroll={(event) => {
        const { scrollTop } = event.currentTarget;
        if (scrollTop !== seen.peek().top) seen.value = { top: scrollTop, height };
        onScroll?.(scrollTop < rowPx / 2);
      }}
    >
      <div class="rows-head" role="row" aria-rowindex={1}>{head}</div>
      <div
        class="rows-body"
        role="presentation"
        style={{ height: `${rows.length * rowPx}px` }}
        onClick={(event) => {
          const pressed = (event.target as Element).closest("[aria-rowindex]");
          if (pressed === null) return;
          const index = Number(pressed.getAttribute("aria-rowindex")) - 2;
          active.value = index;
          onOpen(index);
        }}
      >
        {rows.slice(first, last).map((one, i) => {
          const index = first + i;
          return (
            <Row
              key={reuses ? index % places : keyOf(one)}
              of={one}
              index={index}
              isActive={index === active.value}
              rowPx={rowPx}
              row={row}
            />
          );
        })}
      </div>
    </div>
  );
}

interface RowProps<R> {
  readonly of: R;
  readonly index: number;
  readonly isActive: boolean;
  readonly rowPx: number;
  readonly row: (row: R) => ComponentChildren;
}

/** A row in its place; drawn again when something of it is another. */
class Row<R> extends Component<RowProps<R>> {
  override shouldComponentUpdate(next: RowProps<R>): boolean {
    const { of, index, isActive, rowPx, row } = this.props;
    return of !== next.of || index !== next.index || isActive !== next.isActive ||
      rowPx !== next.rowPx || row !== next.row;
  }

  override render({ of, index, isActive, rowPx, row }: RowProps<R>) {
    return (
      <div
        id={`row-${index}`}
        role="row"
        aria-rowindex={index + 2}
        aria-selected={isActive}
        class="virtual-row"
        style={{ top: `${index * rowPx}px`, height: `${rowPx}px` }}
      >
        {row(of)}
      </div>
    );
  }
}
