import { useSignal } from "@preact/signals";
import type { Resource, Specs } from "../data/types.ts";
import { Tag } from "../parts/basics.tsx";
import { Field, Select } from "../parts/controls.tsx";
import { ago, moment } from "../parts/format.ts";
import { ResourcePage, RoleField } from "../parts/resource_page.tsx";
import { t } from "../text/mod.ts";

/** What is answered to whoever makes one, and to nobody after, has the token itself. */
type Token = Resource<"tokens"> & {
  readonly last_used_at?: string | null;
  readonly token?: string;
};

const NEW: Specs["tokens"] = { name: "", role: "viewer", expires_at: null };
const DAY_MS = 86_400_000;

function hasEnded({ expires_at }: Specs["tokens"]): boolean {
  return expires_at !== null && Date.parse(expires_at) <= Date.now();
}

export default function Tokens() {
  return (
    <ResourcePage
      collection="tokens"
      words={t.tokens}
      icon="key-round"
      initial={NEW}
      isMuted={hasEnded}
      tags={(spec) => hasEnded(spec) && <Tag kind="warning">{t.tokens.ended}</Tag>}
      columns={[
        {
          key: "role",
          title: t.users.role,
          sort: ({ spec }) => spec.role,
          cell: ({ spec }) => t.users.roles[spec.role],
        },
        {
          key: "ends",
          title: t.tokens.ends,
          sort: ({ spec }) => spec.expires_at ?? "~",
          cell: ({ spec }) =>
            spec.expires_at === null ? t.tokens.periods.forGood : moment(new Date(spec.expires_at)),
        },
        {
          key: "used",
          title: t.tokens.used,
          sort: ({ last_used_at }: Token) => last_used_at ?? "",
          cell: ({ last_used_at }: Token) =>
            last_used_at ? ago(new Date(last_used_at)) : t.tokens.never,
        },
      ]}
      fields={({ value, set, problem }, resource) => (
        <>
          <RoleField value={value.role} onChange={(role) => set({ role })} />
          <Field label={t.tokens.endsIn} error={problem("expires_at")}>
            {(ids) => (
              <ValidFor
                {...ids}
                token={resource}
                onChange={(expires_at) => set({ expires_at })}
              />
            )}
          </Field>
        </>
      )}
      secret={{ of: ({ token }: Token) => token, title: t.tokens.made, text: t.tokens.madeText }}
    />
  );
}

type Period = "stays" | "forGood" | "30" | "90" | "365";

/** How long from now a token is good; one that is there may keep its end. */
function ValidFor(
  { token, onChange, ...ids }: {
    token: Resource<"tokens"> | null;
    onChange: (expiresAt: string | null) => void;
    id: string;
  },
) {
  const period = useSignal<Period>(token === null ? "forGood" : "stays");
  const endOf = (chosen: Period) =>
    chosen === "stays"
      ? token?.spec.expires_at ?? null
      : chosen === "forGood"
      ? null
      : new Date(Date.now() + Number(chosen) * DAY_MS).toISOString();
  const periods: Period[] = ["forGood", "30", "90", "365"];
  if (token !== null) periods.unshift("stays");
  return (
    <Select
      {...ids}
      value={period.value}
      onChange={(chosen) => {
        period.value = chosen;
        onChange(endOf(chosen));
      }}
      choices={periods.map((one) => ({ value: one, label: t.tokens.periods[one] }))}
    />
  );
}
