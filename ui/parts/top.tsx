/** The most frequent, each with a way to its queries. */
import type { ComponentChildren } from "preact";
import { t } from "../text/mod.ts";
import { Card, Empty, Name } from "./basics.tsx";
import { compact, percent } from "./format.ts";

const ROWS_SHOWN = 8;

export interface TopEntry {
  readonly name: string;
  readonly count: number;
  readonly href: string;
}

export function Top(
  { title, rows, total, all, mono = false, empty, rowsMax = ROWS_SHOWN }: {
    title: string;
    rows: readonly TopEntry[];
    /** Of what the shares are. */
    total: number;
    all?: string;
    mono?: boolean;
    empty: string;
    rowsMax?: number;
  },
) {
  const most = Math.max(...rows.map(({ count }) => count), 1);
  return (
    <Card
      title={title}
      class="top"
      actions={all !== undefined && rows.length > 0 && <a href={all}>{t.common.all}</a>}
    >
      {rows.length === 0 ? <Empty text={empty} /> : (
        <ol class="bars">
          {rows.slice(0, rowsMax).map(({ name, count, href }) => (
            <Bar key={name} href={href} share={count / most}>
              <Name text={name} mono={mono} />
              <span class="figure" title={percent(count, total)}>{compact(count)}</span>
            </Bar>
          ))}
        </ol>
      )}
    </Card>
  );
}

function Bar(
  { href, share, children }: { href: string; share: number; children: ComponentChildren },
) {
  return (
    <li>
      <a href={href}>
        <span class="bar" style={{ width: `${share * 100}%` }} aria-hidden="true" />
        {children}
      </a>
    </li>
  );
}
