/** What is around every page: navigation, search, filtering and its pause, problems, the account. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { hasCluster, status } from "../data/node.ts";
import { sessionOver } from "../data/api.ts";
import { BOTTOM, NAV } from "../pages.ts";
import { navigate, route } from "../router.ts";
import { t } from "../text/mod.ts";
import { hasKeys } from "../theme.ts";
import { AccountMenu } from "./account_menu.tsx";
import { Banners, ProblemCount } from "./banners.tsx";
import { Button } from "./basics.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon } from "./icon.tsx";
import { PauseControl } from "./pause.tsx";
import { openSearch, Search } from "./search.tsx";
import { SignInForm } from "./sign_in_form.tsx";

const isMoreOpen = signal(false);
const isHelpOpen = signal(false);

function isCurrent(href: string): boolean {
  const { path } = route.value;
  return href === "/" ? path === "/" : path === href || path.startsWith(`${href}/`);
}

function Links({ onGo }: { onGo?: () => void }) {
  return (
    <>
      {NAV.map((section, i) => (
        <ul key={i}>
          {section.filter(({ needsCluster }) => !needsCluster || hasCluster.value).map((entry) => (
            <li key={entry.href}>
              <a
                href={entry.href}
                aria-current={isCurrent(entry.href) ? "page" : undefined}
                onClick={onGo}
                title={t.pages[entry.title]}
              >
                <Icon name={entry.icon} size={18} />
                <span>{t.pages[entry.title]}</span>
              </a>
            </li>
          ))}
        </ul>
      ))}
    </>
  );
}

/** Single keys, where no text is typed. */
function useKeys(): void {
  useEffect(() => {
    let isGoing = false;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      const isSearch = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
      if (isSearch) {
        event.preventDefault();
        return openSearch();
      }
      if (event.ctrlKey || event.metaKey || event.altKey || !hasKeys.value) return;
      const target = event.target as HTMLElement;
      if (target.closest("input, textarea, select, dialog, [role=grid][data-typing]")) return;
      if (isGoing) {
        isGoing = false;
        const entry = NAV.flat().find(({ key }) => key === event.key);
        if (entry !== undefined) {
          event.preventDefault();
          void navigate(entry.href);
        }
        return;
      }
      if (event.key === "g") isGoing = true;
      else if (event.key === "/") {
        event.preventDefault();
        openSearch();
      } else if (event.key === "?") isHelpOpen.value = true;
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

function Help() {
  const rows = [
    ["/  Ctrl K", t.keys.search],
    ["g o  g l  g c  g g  g s", t.keys.go],
    ["j  k  ↑  ↓", t.keys.move],
    ["Enter", t.keys.open],
    ["Space", t.keys.mark],
    ["l", t.keys.live],
    ["f", t.keys.filter],
    ["a  b", t.keys.decide],
    ["u", t.keys.undo],
    ["Esc", t.keys.close],
    ["F8", t.keys.toast],
    ["?", t.keys.help],
  ];
  return (
    <Dialog title={t.keys.title} onClose={() => isHelpOpen.value = false}>
      <dl class="keys">
        {rows.map(([keys, what]) => (
          <div key={keys}>
            <dt>{keys.split("  ").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

function Header() {
  return (
    <header class="header">
      <a class="brand" href="/">
        <Icon name="shield" size={20} />
        <span class="brand-name">svc</span>
        <span class="node">{status.value?.node ?? ""}</span>
      </a>
      <button type="button" class="search-open" onClick={openSearch}>
        <Icon name="search" />
        <span>{t.search.hint}</span>
        <kbd aria-hidden="true">/</kbd>
      </button>
      <div class="header-end">
        <PauseControl />
        <ProblemCount />
        <AccountMenu onHelp={() => isHelpOpen.value = true} />
      </div>
    </header>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  useKeys();
  const close = () => isMoreOpen.value = false;
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        {t.shell.skip}
      </a>
      <div class="shell">
        <Header />
        <nav class="side" aria-label={t.shell.navigation}>
          <Links />
        </nav>
        <div class="content">
          <Banners />
          <main id="main" tabIndex={-1}>{children}</main>
        </div>
        <nav class="bottom" aria-label={t.shell.navigation}>
          {BOTTOM.map((entry) => (
            <a
              key={entry.href}
              href={entry.href}
              aria-current={isCurrent(entry.href) ? "page" : undefined}
            >
              <Icon name={entry.icon} size={20} />
              <span>{t.pages[entry.title]}</span>
            </a>
          ))}
          <button type="button" onClick={() => isMoreOpen.value = true} aria-haspopup="dialog">
            <Icon name="ellipsis" size={20} />
            <span>{t.shell.more}</span>
          </button>
        </nav>
      </div>
      <Search />
      {isMoreOpen.value && (
        <Dialog title={t.shell.more} onClose={close}>
          <nav class="more" aria-label={t.shell.more}>
            <Links onGo={close} />
          </nav>
        </Dialog>
      )}
      {isHelpOpen.value && <Help />}
      {sessionOver.value && (
        <Dialog
          title={t.signIn.over}
          onClose={() => undefined}
          canClose={false}
        >
          <p>{t.signIn.overText}</p>
          <SignInForm onDone={() => sessionOver.value = false} />
          <div class="form-actions">
            <Button
              kind="quiet"
              label={t.signIn.leave}
              onClick={() => location.assign("/sign-in")}
            />
          </div>
        </Dialog>
      )}
    </>
  );
}
