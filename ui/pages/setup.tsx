/** From nothing to a first query, in five steps; all but the first can be skipped. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { call, get } from "../data/api.ts";
import { nodeClock } from "../data/clock.ts";
import { keptOf } from "../data/collections.ts";
import { plainAddresses, readStatus, status } from "../data/node.ts";
import { useLoaded } from "../data/poll.ts";
import { authState, isAdmin, me, signIn } from "../data/session.ts";
import type { EntryPage, RecommendedCatalog } from "../data/types.ts";
import { Alone } from "../parts/alone.tsx";
import { Button, CopyLine, Name, Tag } from "../parts/basics.tsx";
import { TextField } from "../parts/controls.tsx";
import { ErrorBox, Shown } from "../parts/errors.tsx";
import { Form } from "../parts/form.tsx";
import { upstreamName } from "../parts/format.ts";
import { NewPassword } from "../parts/new_password.tsx";
import { choosePreset } from "../data/presets.ts";
import { hrefOf, navigate, param, setParams } from "../router.ts";
import { SignInForm } from "../parts/sign_in_form.tsx";
import { t } from "../text/mod.ts";

const STEPS = ["admin", "preset", "upstreams", "addresses", "first"] as const;
type Step = typeof STEPS[number];
/** Steps that change something. */
const FOR_ADMINS: readonly Step[] = ["admin", "preset"];
const POLL_MS = 2_000;

function stepOf(text: string): Step {
  return STEPS.find((step) => step === text) ?? "admin";
}

export default function Setup() {
  useEffect(() => {
    if (me.value !== null) void readStatus();
  }, [me.value]);
  const step = me.value?.kind === "user"
    ? stepOf(param("step") || "preset")
    : stepOf(param("step"));
  const at = STEPS.indexOf(step);
  const next = () => {
    const following = STEPS[at + 1];
    if (following === undefined) void navigate("/", true);
    else setParams({ step: following }, false);
  };
  const Part = {
    admin: Admin,
    preset: Preset,
    upstreams: Upstreams,
    addresses: Addresses,
    first: First,
  }[step];
  return (
    <Alone title={t.setup.titles[step]} wide>
      <ol class="steps" aria-label={t.setup.steps}>
        {STEPS.map((one, i) => (
          <li
            key={one}
            aria-current={one === step ? "step" : undefined}
            class={i < at ? "done" : ""}
          >
            {t.setup.titles[one]}
          </li>
        ))}
      </ol>
      {me.value === null && step !== "admin"
        ? <ByToken />
        : FOR_ADMINS.includes(step) && me.value !== null && !isAdmin.value
        ? (
          <>
            <p>{t.setup.forAdmins}</p>
            <Foot onNext={next} />
          </>
        )
        : <Part onNext={next} />}
    </Alone>
  );
}

function ByToken() {
  return (
    <>
      <p>{t.setup.needsToken}</p>
      <SignInForm begin="token" onDone={() => undefined} />
    </>
  );
}

interface StepProps {
  readonly onNext: () => void;
}

function Foot(
  { onNext, label, kind = "primary" }: StepProps & { label?: string; kind?: "primary" | "plain" },
) {
  return (
    <div class="form-actions">
      <a class="button quiet" href="/">{t.setup.later}</a>
      <Button kind={kind} label={label ?? t.setup.next} onClick={onNext} />
    </div>
  );
}

/** Who has no user yet comes in from this machine, or by the token. */
function Admin({ onNext }: StepProps) {
  if (me.value?.kind === "user") {
    return (
      <>
        <p>{t.setup.hasUser(me.value.name ?? "")}</p>
        <Foot onNext={onNext} />
      </>
    );
  }
  if (me.value === null) {
    if (authState.value?.setup === false) {
      return <a class="button primary wide" href="/sign-in">{t.signIn.go}</a>;
    }
    return <ByToken />;
  }
  const submit = async ({ name, password }: { name: string; password: string }) => {
    await call("POST", "users", { body: { name, password, role: "admin" } });
    // From here on nobody is let in without having signed in.
    await signIn(name, password, "");
    onNext();
  };
  return (
    <>
      <p class="muted">{t.setup.adminText}</p>
      <Form
        initial={{ name: "", password: "" }}
        submit={submit}
        saveLabel={t.setup.adminGo}
        warns={false}
      >
        {({ value, set, problem }) => (
          <>
            <TextField
              label={t.signIn.name}
              error={problem("name")}
              autocomplete="username"
              autocapitalize="none"
              value={value.name}
              onText={(name) => set({ name })}
            />
            <NewPassword
              label={t.signIn.password}
              value={value.password}
              onInput={(password) => set({ password })}
              error={problem("password")}
            />
          </>
        )}
      </Form>
      <p class="muted small">
        <a href="/">{t.setup.without}</a>
      </p>
    </>
  );
}

function Preset({ onNext }: StepProps) {
  const busy = useSignal<string | null>(null);
  const trouble = useSignal<unknown>(null);
  const catalog = useLoaded(() => get<RecommendedCatalog>("lists/recommended"), []);
  useEffect(() => {
    void keptOf("lists").load();
    void keptOf("groups").load();
  }, []);
  return (
    <>
      <p class="muted">{t.setup.presetText}</p>
      {trouble.value !== null && <ErrorBox error={trouble.value} />}
      <Shown of={catalog}>
        {({ presets, items }) => (
          <ul class="choices">
            {presets.map((preset) => (
              <li key={preset.id}>
                <button
                  type="button"
                  aria-busy={busy.value === preset.id || undefined}
                  disabled={busy.value !== null}
                  onClick={async () => {
                    busy.value = preset.id;
                    trouble.value = null;
                    try {
                      await choosePreset(preset.id);
                      onNext();
                    } catch (error) {
                      trouble.value = error;
                    }
                    busy.value = null;
                  }}
                >
                  <strong>
                    {t.presets[preset.id as keyof typeof t.presets]?.[0] ?? preset.name}
                  </strong>
                  {preset.id === "balanced" && <Tag kind="accent">{t.setup.recommended}</Tag>}
                  <span class="muted">
                    {t.presets[preset.id as keyof typeof t.presets]?.[1] ?? preset.description}
                  </span>
                  <span class="muted small">
                    {t.lists.count(items.filter((item) => item.presets.includes(preset.id)).length)}
                  </span>
                </button>
              </li>
            ))}
          </ul>
        )}
      </Shown>
      <Foot onNext={onNext} label={t.setup.skip} kind="plain" />
    </>
  );
}

const UPSTREAM_EXAMPLE = '[[upstream]]\naddress = "tls://dns.quad9.net"\nbootstrap = ["9.9.9.9"]';

/** The file owns them: there is nothing to save here. */
function Upstreams({ onNext }: StepProps) {
  const { upstreams = [], recursion } = status.value ?? {};
  return (
    <>
      <p class="muted">{recursion?.enabled ? t.overview.recursing : t.setup.upstreamsText}</p>
      <ul class="rows framed">
        {upstreams.map(({ address, healthy }) => (
          <li key={address}>
            <div class="row-flat">
              <span class="row-main">
                <Name text={upstreamName(address)} mono />
              </span>
              {/^(tls|https|quic):/.test(address) && (
                <Tag kind="ok" icon="key-round">{t.setup.encrypted}</Tag>
              )}
              {!healthy && <Tag kind="danger" icon="triangle-alert">{t.overview.silent}</Tag>}
            </div>
          </li>
        ))}
      </ul>
      <p class="muted">{t.setup.otherUpstreams}</p>
      <pre class="snippet">{UPSTREAM_EXAMPLE}</pre>
      <Foot onNext={onNext} />
    </>
  );
}

/** What is typed into a router or a phone. */
function Addresses({ onNext }: StepProps) {
  const plain = status.value?.addresses.find(({ protocol }) => protocol === "udp");
  const port = plain?.address.replace(/^.*:/, "") ?? "53";
  return (
    <>
      <p class="muted">{t.setup.addressesText}</p>
      {plainAddresses.value.map((address) => (
        <CopyLine key={address} label={address.includes(":") ? "IPv6" : "IPv4"} text={address} />
      ))}
      {port !== "53" && <p class="problem">{t.setup.port(port)}</p>}
      <p>
        <a href="/connect">{t.setup.more}</a>
      </p>
      <Foot onNext={onNext} />
    </>
  );
}

function First({ onNext }: StepProps) {
  const began = useSignal(new Date(nodeClock.nowMs - 10 * 60_000).toISOString());
  const latest = useLoaded(
    async () => {
      const page = await get<EntryPage>("querylog", { since: began.value, limit: 1 });
      return { entry: page.entries[0] ?? null };
    },
    [],
    POLL_MS,
  );
  const entry = latest.data.value?.entry ?? null;
  return (
    <>
      {entry === null
        ? (
          <div class="waiting" role="status">
            <span class="pulse" aria-hidden="true" />
            <p>{t.setup.waiting}</p>
          </div>
        )
        : (
          <div class="waiting done" role="status">
            <p>
              <strong>{t.setup.firstQuery}</strong>{" "}
              <Name text={entry.client_name ?? entry.client ?? ""} /> {t.setup.askedFor}{" "}
              <Name text={entry.name} mono />
            </p>
            {isAdmin.value && entry.client !== null && entry.client_name === null && (
              <a class="button plain" href={hrefOf("/clients", { add: entry.client })}>
                {t.log.nameClient}
              </a>
            )}
          </div>
        )}
      <Foot onNext={onNext} label={t.setup.finish} />
    </>
  );
}
