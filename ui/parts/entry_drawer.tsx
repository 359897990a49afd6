/** All there is about one query: what decided, what to do, and what it would come to now. */
import { useSignal } from "@preact/signals";
import type { Entry } from "../data/types.ts";
import { isAdmin } from "../data/session.ts";
import { hrefOf, hrefWith } from "../router.ts";
import { t } from "../text/mod.ts";
import { Name, Tag } from "./basics.tsx";
import { Drawer } from "./drawer.tsx";
import { fullTime, number } from "./format.ts";
import { clientIdOf, deciderName, groupName } from "./names.ts";
import { clientOf, OutcomeTag } from "./outcome.tsx";
import { Panel } from "./panel.tsx";
import { Why } from "./why.tsx";

export function EntryDrawer({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const turn = useSignal(0);
  const clientId = clientIdOf(entry);
  const label = clientOf(entry);
  return (
    <Drawer title={<Name text={entry.name} mono />} onClose={onClose}>
      <p class="drawer-line">
        <OutcomeTag outcome={entry.outcome} />
        <Tag>{entry.type}</Tag>
        <span class="muted">{fullTime(new Date(entry.time))}</span>
      </p>
      {entry.rule !== null && (
        <p class="drawer-rule">
          <code class="rule">
            <Name text={entry.rule} />
          </code>
          <span class="muted">{t.log.ruleOf(deciderName(entry.list), groupName(entry.group))}</span>
        </p>
      )}
      <Panel
        name={entry.name}
        type={entry.type}
        decider={entry}
        client={{ id: clientId, label, ask: entry.client ?? entry.client_id }}
        group={entry.group}
        entry={entry.id}
        onDone={() => turn.value++}
      />
      <div class="row-actions">
        <a class="button plain small" href={hrefWith({ name: entry.name })}>{t.log.onlyName}</a>
        <a class="button plain small" href={hrefWith({ client: label })}>{t.log.onlyClient}</a>
        {clientId !== null
          ? <a class="button plain small" href={`/clients/${clientId}`}>{t.log.toClient(label)}</a>
          : isAdmin.value && entry.client !== null && (
            <a class="button plain small" href={hrefOf("/clients", { add: entry.client })}>
              {t.log.nameClient}
            </a>
          )}
      </div>
      <h3>{t.log.now}</h3>
      <Why
        name={entry.name}
        type={entry.type}
        client={entry.client ?? entry.client_id}
        turn={turn.value}
      />
      <h3>{t.common.details}</h3>
      <Details entry={entry} />
    </Drawer>
  );
}

function Details({ entry }: { entry: Entry }) {
  const rows: readonly (readonly [string, string | null, href?: string])[] = [
    [
      t.log.fields.client,
      [clientOf(entry), entry.client].filter((one, i, all) =>
        one !== null && all.indexOf(one) === i
      ).join(", "),
    ],
    [t.log.fields.group, groupName(entry.group), hrefWith({ group: entry.group })],
    [t.log.fields.list, deciderName(entry.list), hrefWith({ list: entry.list })],
    [t.log.fields.type, entry.type, hrefWith({ type: entry.type })],
    [t.log.fields.answers, entry.answers.join("\n")],
    [t.log.fields.rcode, entry.rcode],
    [t.log.fields.upstream, entry.upstream, hrefWith({ upstream: entry.upstream })],
    [t.log.fields.protocol, entry.protocol, hrefWith({ protocol: entry.protocol })],
    [t.log.fields.dnssec, [entry.dnssec, entry.dnssec_reason].filter(Boolean).join(": ")],
    [t.log.fields.duration, `${number(entry.duration_us / 1_000, 3)} ms`],
    [t.log.fields.node, entry.node],
  ];
  return (
    <dl class="facts">
      {rows.filter(([, value]) => value !== null && value !== "").map(([title, value, href]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>
            {value!.split("\n").map((line) => (
              <div key={line}>
                {href === undefined
                  ? <Name text={line} mono />
                  : (
                    <a href={href} title={t.log.onlyThese}>
                      <Name text={line} mono />
                    </a>
                  )}
              </div>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  );
}
