import { type ComponentChildren, type ComponentType, render } from "preact";
import { useEffect, useErrorBoundary, useRef } from "preact/hooks";
import { effect, signal, untracked } from "@preact/signals";
import "./at_once.ts";
import { awaySince, token } from "./data/api.ts";
import { allBegun, forgetBegun } from "./data/begun.ts";
import { nodeClock } from "./data/clock.ts";
import { followStatus, nowMs, pausedUntil } from "./data/node.ts";
import { authState, me, readAuthState, recognise, refused } from "./data/session.ts";
import { followEvents } from "./data/events.ts";
import { isAlone, type PagePath } from "./page_paths.ts";
import { PAGES } from "./pages.ts";
import { Button, Empty } from "./parts/basics.tsx";
import { Confirmation } from "./parts/dialog.tsx";
import { countdown } from "./parts/format.ts";
import { Shell } from "./parts/shell.tsx";
import { Toasts } from "./parts/toasts.tsx";
import { keep, kept, preferredLanguage } from "./preferences.ts";
import { hrefOf, listenToLinks, navigate, route } from "./router.ts";
import { language, setLanguage, t } from "./text/mod.ts";
import "./theme.ts";

/** Longest that the first view waits for data that was asked for; then it shows that it waits. */
const DATA_MS_MAX = 300;

const loaded = signal<ReadonlyMap<PagePath, ComponentType>>(new Map());
/** The page whose code did not come. */
const failed = signal<PagePath | null>(null);

async function load(page: PagePath): Promise<void> {
  failed.value = null;
  if (loaded.peek().has(page)) return;
  try {
    const { default: component } = await PAGES[page].load();
    loaded.value = new Map([...loaded.value, [page, component]]);
  } catch {
    failed.value = page;
  }
}

/** The page of the path, once its code is here; what was there before stays until then. */
function Page() {
  const { page, path } = route.value;
  const shown = useRef<PagePath | null>(null);
  const isThere = page !== null && loaded.value.has(page);
  if (isThere) shown.current = page;
  useEffect(() => {
    if (!isThere && page !== null) return;
    document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
  }, [path, isThere]);
  if (page === null) return <NotFound />;
  if (failed.value === page) return <Failed />;
  const now = shown.current;
  const Component = now === null ? undefined : loaded.value.get(now);
  if (Component === undefined) return null;
  return (
    <Guarded path={isThere ? path : null}>
      <Component key={now} />
    </Guarded>
  );
}

function Failed() {
  return (
    <Empty text={t.shell.pageFailed} icon="wifi-off">
      <Button kind="primary" label={t.common.reload} onClick={() => location.reload()} />
    </Empty>
  );
}

/** A page that fails takes nothing of what is around it along. */
function Guarded({ path, children }: { path: string | null; children: ComponentChildren }) {
  const failedAt = useRef<string | null>(null);
  const [error, again] = useErrorBoundary((thrown) => {
    failedAt.current = path;
    reportError(thrown);
  });
  useEffect(() => {
    // Without a path, what failed is still what is shown; and a page may fail before this is run for it.
    if (path !== null && path !== failedAt.current) again();
    if (path !== null) failedAt.current = null;
  }, [path]);
  return error === undefined ? <>{children}</> : <Failed />;
}

function NotFound() {
  return (
    <>
      <h1 tabIndex={-1} class="for-ears">{t.shell.notFound}</h1>
      <Empty text={t.shell.notFound} icon="search">
        <a class="button primary" href="/">{t.pages.overview}</a>
      </Empty>
    </>
  );
}

/** The API answers nobody who comes by this address. */
function Refused({ message }: { message: string }) {
  const local = `http://127.0.0.1:${location.port === "" ? "80" : location.port}/`;
  return (
    <main class="alone">
      <h1 tabIndex={-1}>{t.shell.refused}</h1>
      <p>{message}</p>
      <p>{t.shell.refusedHelp(local)}</p>
    </main>
  );
}

function App() {
  const { page } = route.value;
  if (refused.value !== null) return <Refused message={refused.value} />;
  return (
    <div key={language.value} class="root">
      {(page !== null && isAlone(page)) || me.value === null
        ? (
          <main class="alone" id="main">
            <Page />
          </main>
        )
        : (
          <Shell>
            <Page />
          </Shell>
        )}
      <Toasts />
      <Confirmation />
    </div>
  );
}

/** The title of the window: the page, and how long a pause lasts. */
function tellTitle(): void {
  void language.value;
  const { page } = route.value;
  const name = page === null ? t.shell.notFound : t.pages[PAGES[page].title];
  const until = pausedUntil.value;
  const left = until === null ? "" : `⏸ ${countdown(until.getTime() - nowMs.value)} `;
  document.title = `${left}${name} · svc`;
}

/** Sends whoever may not be here to where they can come in. */
function guard(): void {
  const { page, path } = route.value;
  if (page === null) return;
  const here = path + location.search;
  if (me.value === null && refused.value === null) {
    if (isAlone(page)) return;
    if (authState.value?.setup === true) void navigate("/setup", true);
    else {void navigate(
        hrefOf("/sign-in", { next: here === "/" ? "" : here }),
        true,
      );}
  } else if (me.value?.kind === "unauthenticated" && page === "/" && !wasOffered()) {
    void navigate("/setup", true);
  }
}

let isOffered = false;
/** Setting up is offered once to who has no user; whoever wants none is left in peace. */
function wasOffered(): boolean {
  const key = "svc.setup";
  const was = isOffered || kept(key, () => sessionStorage) !== null;
  isOffered = true;
  keep(key, "offered", () => sessionStorage);
  return was;
}

async function start(): Promise<void> {
  const root = document.getElementById("app")!;
  // What the first view needs is asked for at once, not one behind the other.
  const spoken = setLanguage(preferredLanguage(), false);
  const { page } = route.value;
  const opened = page === null ? Promise.resolve() : load(page);
  for (;;) {
    try {
      if (!await recognise()) await readAuthState();
      break;
    } catch {
      await spoken;
      awaySince.value ??= nodeClock.now();
      root.textContent = t.errors.away;
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    }
  }
  await Promise.all([spoken, opened]);
  // Drawn once with its data, where that is about to come, rather than first without.
  await Promise.race([allBegun(), new Promise((resolve) => setTimeout(resolve, DATA_MS_MAX))]);
  listenToLinks();
  effect(tellTitle);
  effect(guard);
  effect(() => {
    const { page } = route.value;
    if (page !== null) void untracked(() => load(page));
  });
  root.textContent = ""; // The shell without its words, which the page brought.
  render(<App />, root);
  let stop: (() => void) | null = null;
  effect(() => {
    const isIn = me.value !== null;
    void token.value;
    stop?.();
    const stops = untracked(() => isIn ? [followStatus(), followEvents()] : []);
    stop = () => stops.forEach((end) => end());
  });
  forgetBegun();
}

void start();
