/** Every query, as it comes or as it was; what decided it, and what to do about it. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { get } from "../data/api.ts";
import { useCollection } from "../data/collections.ts";
import { keyOf, Log, type LogFilter } from "../data/log.ts";
import { apiPath } from "../data/paths.ts";
import { useLoaded } from "../data/poll.ts";
import { wayBack } from "../data/ways_back.ts";
import type { Entry, NamePage } from "../data/types.ts";
import { Button, Empty, Name, Popover } from "../parts/basics.tsx";
import { Switch } from "../parts/controls.tsx";
import { attempt, ErrorBox, Shown } from "../parts/errors.tsx";
import { ago, clock, moment, number } from "../parts/format.ts";
import { EntryDrawer } from "../parts/entry_drawer.tsx";
import { LogFilters, useFilter } from "../parts/log_filters.tsx";
import { deciderName } from "../parts/names.ts";
import { clientOf, ListedOutcome } from "../parts/outcome.tsx";
import { Table } from "../parts/table.tsx";
import { useMedia } from "../parts/use_media.ts";
import { VirtualRows } from "../parts/virtual_rows.tsx";
import { hrefWith, param, setParams } from "../router.ts";
import { language, t } from "../text/mod.ts";
import { hasKeys } from "../theme.ts";

const ROW_PX = { wide: 36, phone: 60 };

export default function LogPage() {
  const filter = useFilter();
  const isGrouped = param("distinct") === "name";
  useCollection("lists");
  useCollection("groups");
  useCollection("clients");
  return (
    <div class="log-page">
      <h1 tabIndex={-1} class="for-ears">{t.pages.log}</h1>
      {isGrouped ? <ByName filter={filter} /> : <Entries filter={filter} />}
    </div>
  );
}

function Export({ filter }: { filter: LogFilter }) {
  return (
    <Popover label={t.log.export} icon="download" kind="quiet">
      {(close) => (
        <div class="menu">
          {(["csv", "ndjson"] as const).map((format) => (
            <a
              key={format}
              href={apiPath("querylog/export", { ...filter, format })}
              download
              onClick={close}
            >
              {t.log.formats[format]}
            </a>
          ))}
        </div>
      )}
    </Popover>
  );
}

function GroupButton({ isOn }: { isOn: boolean }) {
  return (
    <a
      class={`button ${isOn ? "plain on" : "quiet"}`}
      href={hrefWith({ distinct: isOn ? null : "name" })}
      aria-pressed={isOn}
      role="button"
    >
      {t.log.group}
    </a>
  );
}

/** One row a name, however often it was asked for. */
function ByName({ filter }: { filter: LogFilter }) {
  const names = useLoaded(
    (signal) => get<NamePage>("querylog", { ...filter, distinct: "name", limit: 500 }, signal),
    [JSON.stringify(filter)],
  );
  return (
    <>
      <LogFilters filter={filter}>
        <GroupButton isOn />
      </LogFilters>
      <Shown of={names} rows={10}>
        {({ names: items }) =>
          items.length === 0 ? <Empty text={t.log.nothing} icon="scroll-text" /> : (
            <Table
              caption={t.log.group}
              rows={items}
              keyOf={({ name }) => name}
              sortBy=""
              columns={[
                {
                  key: "name",
                  title: t.common.name,
                  card: "title",
                  sort: ({ name }) => name,
                  cell: ({ name }) => (
                    <a href={hrefWith({ distinct: null, name })}>
                      <Name text={name} mono />
                    </a>
                  ),
                },
                {
                  key: "count",
                  title: t.log.count,
                  align: "end",
                  sort: ({ count }) => -count,
                  cell: ({ count }) => number(count),
                },
                {
                  key: "first",
                  title: t.log.first,
                  sort: ({ first }) => first,
                  cell: ({ first }) => moment(new Date(first)),
                },
                {
                  key: "last",
                  title: t.log.last,
                  sort: ({ last }) => last,
                  cell: ({ last }) => ago(new Date(last)),
                },
              ]}
            />
          )}
      </Shown>
    </>
  );
}

function Entries({ filter }: { filter: LogFilter }) {
  const log = useMemo(() => new Log(), []);
  const active = useSignal(0);
  const open = useSignal<Entry | null>(null);
  const isAtTop = useRef(true);
  const isMoved = useRef(false);
  const key = JSON.stringify(filter);
  const isFrozen = filter.until !== null && filter.until !== undefined;
  const isLive = !isFrozen && param("live") === "1";
  useEffect(() => {
    active.value = 0;
    void log.load(filter);
  }, [key]);
  useEffect(() => {
    if (!isLive) return;
    const look = () => {
      if (document.visibilityState === "visible") log.follow(filter);
      else log.stop();
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      log.stop();
    };
  }, [key, isLive]);
  useEffect(() => () => log.close(), []);
  // Whoever reads on, opens an entry or chooses one by keys is not to have it run away.
  const hold = () => {
    log.isHeld.value = !isAtTop.current || isMoved.current || open.value !== null;
    if (!log.isHeld.peek() && log.waiting.peek().length > 0) log.release();
  };
  useSignalEffect(() => {
    void open.value;
    hold();
  });
  const show = (index: number) => {
    active.value = index;
    open.value = log.entries.value[index] ?? null;
  };
  const release = () => {
    isAtTop.current = true;
    isMoved.current = false;
    document.querySelector(".virtual")?.scrollTo(0, 0);
    log.release();
    hold();
  };
  useLogKeys(
    () => setParams({ live: isLive ? null : "1" }),
    () => {
      show(active.value);
      setTimeout(() => document.querySelector<HTMLElement>(".panel-go")?.focus(), 50);
    },
    () => {
      const back = wayBack(log.entries.value[active.value]?.id ?? "");
      if (back !== null) void attempt(back);
    },
    (step) => show(Math.max(0, Math.min(log.entries.value.length - 1, active.value + step))),
    () => open.value !== null,
  );
  return (
    <>
      <LogFilters filter={filter}>
        <Switch
          isOn={isLive}
          label={t.log.live}
          disabled={isFrozen}
          why={isFrozen ? t.log.frozen : undefined}
          onChange={(on) => setParams({ live: on ? "1" : null })}
        />
        <GroupButton isOn={false} />
        <Export filter={filter} />
      </LogFilters>
      <Notes log={log} onRelease={release} isLive={isLive} />
      {log.error.value !== null && (
        <ErrorBox
          error={log.error.value}
          onRetry={() => void log.load(filter)}
        />
      )}
      <div class={open.value === null ? "log-split" : "log-split open"}>
        <Rows
          log={log}
          active={active}
          onOpen={show}
          onScroll={(top) => {
            isAtTop.current = top;
            if (top) isMoved.current = false;
            hold();
          }}
          onMove={(index) => {
            isMoved.current = index !== null && index > 0;
            hold();
          }}
        />
        {open.value !== null && (
          <EntryDrawer
            key={keyOf(open.value)}
            entry={open.value}
            onClose={() => open.value = null}
          />
        )}
      </div>
    </>
  );
}

/** The entries, drawn again as they come; what is around them is not. */
function Rows(
  { log, active, onOpen, onScroll, onMove }: {
    log: Log;
    active: Signal<number>;
    onOpen: (index: number) => void;
    onScroll: (isAtTop: boolean) => void;
    onMove: (index: number | null) => void;
  },
) {
  const isPhone = useMedia("(max-width: 639px)");
  if (log.isEmpty.value) return <Empty text={t.log.nothing} icon="scroll-text" />;
  return (
    <VirtualRows
      key={language.value}
      rows={log.entries.value}
      total={log.next.value === null ? log.entries.value.length + 1 : null}
      rowPx={isPhone ? ROW_PX.phone : ROW_PX.wide}
      keyOf={keyOf}
      label={t.pages.log}
      columns={6}
      active={active}
      onOpen={onOpen}
      onEnd={() => void log.more()}
      onScroll={onScroll}
      onMove={onMove}
      head={<Head />}
      row={rowOf}
      reuses
    />
  );
}

function useLogKeys(
  onLive: () => void,
  onDecide: () => void,
  onUndo: () => void,
  onStep: (step: number) => void,
  isOpen: () => boolean,
): void {
  const work = useRef({ onLive, onDecide, onUndo, onStep, isOpen });
  work.current = { onLive, onDecide, onUndo, onStep, isOpen };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement;
      if (!hasKeys.value || target.closest("input, textarea, select, dialog, [role=radiogroup]")) {
        return;
      }
      const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
      if (event.key === "l") work.current.onLive();
      else if (event.key === "a" || event.key === "b") work.current.onDecide();
      else if (event.key === "u") work.current.onUndo();
      else if (event.key === "f") {
        event.preventDefault();
        document.querySelector<HTMLElement>(".log-filters input")?.focus();
      } else if (step !== undefined && work.current.isOpen()) {
        event.preventDefault();
        work.current.onStep(step);
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

/** What has come meanwhile, and how; readers of screens hear a count, never rows. */
function Notes({ log, onRelease, isLive }: { log: Log; onRelease: () => void; isLive: boolean }) {
  const waiting = log.waiting.value.length;
  const heard = useSignal("");
  useEffect(() => {
    if (!isLive) return;
    const timer = setInterval(() => {
      const count = log.waiting.value.length;
      heard.value = count > 0 ? t.log.fresh(count) : "";
    }, 10_000);
    return () => clearInterval(timer);
  }, [isLive]);
  return (
    <>
      <span class="for-ears" role="status">{heard.value}</span>
      {log.way.value === "poll" && <p class="log-note">{t.log.polling}</p>}
      {log.skipped.value > 0 && <p class="log-note">{t.log.skipped(number(log.skipped.value))}</p>}
      <div class="log-fresh">
        {waiting > 0 && (
          <Button
            small
            kind="primary"
            icon="chevron-up"
            label={t.log.fresh(waiting)}
            onClick={onRelease}
          />
        )}
      </div>
    </>
  );
}

function Head() {
  return (
    <>
      {(["time", "outcome", "name", "client", "decidedBy", "ms"] as const).map((column, i) => (
        <span key={column} role="columnheader" aria-colindex={i + 1} class={`c-${column}`}>
          {t.log.columns[column]}
        </span>
      ))}
    </>
  );
}

function rowOf(entry: Entry) {
  return <Row entry={entry} />;
}

function Row({ entry }: { entry: Entry }) {
  const back = wayBack(entry.id);
  const by = deciderName(entry.list) || entry.upstream || "";
  return (
    <>
      <span role="gridcell" class="c-time">
        {clock(new Date(entry.time))}
      </span>
      <span role="gridcell" class="c-outcome">
        <ListedOutcome outcome={entry.outcome} />
      </span>
      <span role="gridcell" class="c-name">
        <Name text={entry.name} mono />
        <span class="type">{entry.type}</span>
        {back !== null && (
          <button
            type="button"
            class="button small row-undo"
            tabIndex={-1}
            aria-label={`${t.common.undo}: ${entry.name}`}
            onClick={(event) => {
              event.stopPropagation();
              void attempt(back);
            }}
          >
            {t.common.undo}
          </button>
        )}
      </span>
      <span role="gridcell" class="c-client">
        <Name text={clientOf(entry)} />
      </span>
      <span role="gridcell" class="c-decidedBy">
        <Name text={by} />
      </span>
      <span role="gridcell" class="c-ms">
        {number(entry.duration_us / 1_000, 1, 1)}
      </span>
    </>
  );
}
