/** What everybody should know at once: problems, an API that is silent, a node that can't write. */
import { signal } from "@preact/signals";
import { awaySince } from "../data/api.ts";
import {
  changeSettings,
  isReadOnly,
  isUpgraded,
  mayChange,
  problems,
  status,
} from "../data/node.ts";
import { isOpen, me } from "../data/session.ts";
import type { ProblemItem } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Button } from "./basics.tsx";
import { attempt } from "./errors.tsx";
import { pageOf } from "./error_text.ts";
import { ago, clock, visible } from "./format.ts";
import { Icon } from "./icon.tsx";
import type { IconName } from "./icon_names.ts";
import type { ComponentChildren } from "preact";

const areProblemsShown = signal(false);

function Banner(
  { kind, icon, children }: {
    kind: "info" | "warning" | "danger";
    icon: IconName;
    children: ComponentChildren;
  },
) {
  return (
    <div class={`banner ${kind}`} role="status">
      <Icon name={icon} size={18} />
      <div class="banner-body">{children}</div>
    </div>
  );
}

/** Where a problem is mended: what it names, or what its words are about. */
function mendOf({ code, message, resource }: ProblemItem): string | null {
  const page = resource?.id ? pageOf(resource.id) : null;
  if (page !== null) return page;
  const text = `${code} ${message} ${resource?.type ?? ""}`.toLowerCase();
  if (/access\.allowed|anybody who reaches/.test(text)) return "/settings#access";
  if (/\blists?\b|download|catalogue/.test(text)) return "/lists";
  if (/upstream/.test(text)) return "/settings#upstreams";
  if (/cluster|member|leader|voter/.test(text)) return "/cluster";
  if (/query ?log/.test(text)) return "/log";
  if (/certificate|tls/.test(text)) return "/settings#node";
  return null;
}

export function ProblemCount() {
  const count = problems.value.length;
  if (count === 0) return null;
  return (
    <button
      type="button"
      class="problem-count"
      aria-expanded={areProblemsShown.value}
      aria-label={t.shell.problems(count)}
      title={t.shell.problems(count)}
      onClick={() => areProblemsShown.value = !areProblemsShown.value}
    >
      <Icon name="triangle-alert" />
      {count}
    </button>
  );
}

function Problems() {
  const all = problems.value;
  if (all.length === 0) return null;
  const [first, ...others] = all;
  const shown = areProblemsShown.value ? all : [first];
  return (
    <Banner kind="warning" icon="triangle-alert">
      <ul class="problem-list">
        {shown.map((problem) => {
          const href = mendOf(problem);
          return (
            <li key={problem.message}>
              <span>{visible(problem.message)}</span>
              <span class="muted">{ago(new Date(problem.since))}</span>
              {href !== null && <a href={href}>{t.shell.mend}</a>}
            </li>
          );
        })}
      </ul>
      {others.length > 0 && (
        <Button
          small
          kind="quiet"
          label={areProblemsShown.value ? t.common.less : t.shell.moreProblems(others.length)}
          onClick={() => areProblemsShown.value = !areProblemsShown.value}
        />
      )}
    </Banner>
  );
}

export function Banners() {
  const turnOn = () =>
    attempt(() => changeSettings((settings) => ({ ...settings, protection: true }), t.pause.isOn));
  return (
    <aside class="banners" aria-label={t.shell.notices}>
      {awaySince.value !== null && (
        <Banner kind="danger" icon="wifi-off">{t.shell.away(clock(awaySince.value))}</Banner>
      )}
      {isUpgraded.value && (
        <Banner kind="info" icon="info">
          {t.shell.upgraded(status.value?.version ?? "")}
          <Button small label={t.common.reload} onClick={() => location.reload()} />
        </Banner>
      )}
      {status.value?.protection === false && (
        <Banner kind="danger" icon="shield-off">
          {t.pause.offBanner}
          {mayChange.value && <Button small label={t.pause.turnOn} onClick={turnOn} />}
        </Banner>
      )}
      {isOpen.value && (
        <Banner kind="warning" icon="key-round">
          {t.shell.open}
          <a href="/setup">{t.shell.setUp}</a>
        </Banner>
      )}
      {isReadOnly.value && (
        <Banner kind="warning" icon="server">
          {status.value?.cluster.problems[0] ?? t.shell.readOnlyNode}
          <a href="/cluster">{t.pages.cluster}</a>
        </Banner>
      )}
      {me.value?.role === "viewer" && (
        <p class="read-only">
          <span class="tag plain">
            <Icon name="eye" size={12} />
            {t.shell.readOnly}
          </span>
        </p>
      )}
      <Problems />
    </aside>
  );
}
