/** Why a name is answered as it is: what decides now, and what lost against it. */
import { useEffect } from "preact/hooks";
import { get } from "../data/api.ts";
import { useCollection } from "../data/collections.ts";
import { useLoaded } from "../data/poll.ts";
import type { Explanation } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Name } from "./basics.tsx";
import { Shown } from "./errors.tsx";
import { upstreamName } from "./format.ts";
import { deciderName } from "./names.ts";
import { OutcomeTag } from "./outcome.tsx";

export function Why(
  { name, type, client, turn = 0, onAnswer }: {
    name: string;
    type: string;
    /** An address, or an ID of a client. */
    client: string | null;
    /** Asks again when it changes. */
    turn?: number;
    onAnswer?: (explanation: Explanation) => void;
  },
) {
  useCollection("lists");
  const answer = useLoaded(
    (signal) => get<Explanation>("explain", { name, type, client }, signal),
    [name, type, client, turn],
  );
  useEffect(() => {
    if (answer.data.value !== null) onAnswer?.(answer.data.value);
  }, [answer.data.value]);
  return <Shown of={answer} rows={2}>{(found) => <Explained of={found} />}</Shown>;
}

/** What `explain` said, in words. */
export function Explained({ of }: { of: Explanation }) {
  const [decides, ...others] = of.matches;
  return (
    <div class="why">
      <p class="why-line">
        <OutcomeTag outcome={of.outcome} />
        <span>
          {of.rule === null ? t.why.noRule : t.why.by(
            of.list === "rules" ? deciderName(of.list) : decides?.list_name ?? deciderName(of.list),
          )}
        </span>
      </p>
      {of.rule !== null && (
        <p>
          <code class="rule">
            <Name text={of.rule} />
          </code>
        </p>
      )}
      {of.records.length > 0 && (
        <p class="muted">
          {t.why.answers} <Name mono text={of.records.join(", ")} />
        </p>
      )}
      <p class="muted">
        {t.why.asWho(of.client?.name ?? t.why.unknownClient, of.group.name)}
      </p>
      {of.upstreams && (
        <p class="muted">
          {of.upstreams.length === 0 ? t.why.noUpstream : (
            <>
              {t.why.asks} <Name mono text={of.upstreams.map(shownUpstream).join(", ")} />
            </>
          )}
        </p>
      )}
      {!of.querylog && <p class="muted">{t.why.notLogged}</p>}
      {!of.statistics && <p class="muted">{t.why.notCounted}</p>}
      {others.length > 0 && (
        <ul class="matches">
          {others.map((match, i) => (
            <li key={i}>
              <code class="rule">
                <Name text={match.rule} />
              </code>
              <span class="muted">
                {[match.list === "rules" ? deciderName(match.list) : match.list_name, match.lost]
                  .filter((one) => one !== null).join(": ")}
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** As groups call it, with its address, or that alone. */
function shownUpstream({ address, name }: NonNullable<Explanation["upstreams"]>[number]): string {
  return name === null ? upstreamName(address) : `${name} (${upstreamName(address)})`;
}
