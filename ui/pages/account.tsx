import { useSignal } from "@preact/signals";
import { call, get, sessionEnds } from "../data/api.ts";
import { useLoaded } from "../data/poll.ts";
import { me } from "../data/session.ts";
import { Button, Card, Copy, CopyLine, Empty, Name, PageHead, Tag } from "../parts/basics.tsx";
import { Check, Field, TextField } from "../parts/controls.tsx";
import { attempt, Shown } from "../parts/errors.tsx";
import { Form } from "../parts/form.tsx";
import { moment } from "../parts/format.ts";
import { NewPassword } from "../parts/new_password.tsx";
import { Qr } from "../parts/qr.tsx";
import { navigate } from "../router.ts";
import { toast } from "../parts/toasts.tsx";
import { t } from "../text/mod.ts";

/** A new password or factor ends one's sessions. */
async function toSignIn(said: string): Promise<void> {
  sessionEnds();
  me.value = null;
  toast(said);
  await navigate("/sign-in?next=/account");
}

export default function Account() {
  const { kind, name, otp } = me.value ?? { kind: "", name: "", otp: false };
  if (kind !== "user") {
    return (
      <>
        <PageHead title={t.pages.account} />
        <Empty text={t.account.noUser} icon="user-round">
          <a class="button primary" href="/users">{t.pages.users}</a>
        </Empty>
      </>
    );
  }
  return (
    <>
      <PageHead title={t.pages.account} lead={<Name text={name ?? ""} />} />
      <div class="settings">
        <Card title={t.signIn.password}>
          <Password />
        </Card>
        <Card
          title={t.users.otp}
          actions={otp
            ? <Tag kind="ok" icon="shield-check">{t.common.on}</Tag>
            : <Tag>{t.common.off}</Tag>}
        >
          {otp ? <RemoveOtp /> : <AddOtp />}
        </Card>
        <Sessions />
      </div>
    </>
  );
}

function CurrentPassword(
  { value, onInput, error }: {
    value: string;
    onInput: (text: string) => void;
    error?: string | undefined;
  },
) {
  return (
    <Field label={t.account.current} error={error}>
      {(ids) => (
        <input
          {...ids}
          type="password"
          autocomplete="current-password"
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function Password() {
  const submit = async ({ current, password }: { current: string; password: string }) => {
    await call("PUT", "auth/password", { body: { current, password }, takes401: true });
    await toSignIn(t.account.passwordSet);
  };
  return (
    <Form initial={{ current: "", password: "" }} submit={submit} saveLabel={t.account.setPassword}>
      {({ value, set, problem }) => (
        <>
          <p class="muted">{t.account.endsSessions}</p>
          <CurrentPassword
            value={value.current}
            onInput={(current) => set({ current })}
            error={problem("current")}
          />
          <NewPassword
            value={value.password}
            onInput={(password) =>
              set({ password })}
            error={problem("password")}
          />
        </>
      )}
    </Form>
  );
}

function AddOtp() {
  const secret = useSignal<{ secret: string; uri: string } | null>(null);
  const codes = useSignal<readonly string[] | null>(null);
  const isKept = useSignal(false);
  if (codes.value !== null) {
    const text = codes.value.join("\n");
    return (
      <div class="form">
        <p>{t.account.codesText}</p>
        <ol class="codes">
          {codes.value.map((code) => (
            <li key={code}>
              <code>{code}</code>
            </li>
          ))}
        </ol>
        <Copy text={text} />
        <Check
          isOn={isKept.value}
          label={t.account.codesKept}
          onChange={(on) => isKept.value = on}
        />
        <Button
          kind="primary"
          label={t.signIn.over}
          disabled={!isKept.value}
          onClick={() => void toSignIn(t.account.otpSet)}
        />
      </div>
    );
  }
  if (secret.value === null) {
    const submit = async ({ password }: { password: string }) => {
      secret.value = await call("POST", "auth/otp", { body: { password }, takes401: true });
    };
    return (
      <Form
        key="begin"
        initial={{ password: "" }}
        submit={submit}
        saveLabel={t.account.addOtp}
        warns={false}
      >
        {({ value, set, problem }) => (
          <>
            <p class="muted">{t.account.otpText}</p>
            <CurrentPassword
              value={value.password}
              onInput={(password) => set({ password })}
              error={problem("password")}
            />
          </>
        )}
      </Form>
    );
  }
  const submit = async ({ code }: { code: string }) => {
    const answer = await call<{ recovery_codes: string[] }>("POST", "auth/otp/confirm", {
      body: { code },
      takes401: true,
    });
    // From here on this session is over: what comes next is to keep the codes.
    sessionEnds();
    codes.value = answer.recovery_codes;
  };
  return (
    <Form key="confirm" initial={{ code: "" }} submit={submit} saveLabel={t.account.confirm}>
      {({ value, set, problem }) => (
        <>
          <p>{t.account.scan}</p>
          <Qr text={secret.value!.uri} label={t.users.otp} />
          <CopyLine label={t.account.secret} text={secret.value!.secret} />
          <TextField
            label={t.signIn.code}
            error={problem("code")}
            inputMode="numeric"
            autocomplete="one-time-code"
            value={value.code}
            onText={(code) => set({ code: code.trim() })}
          />
        </>
      )}
    </Form>
  );
}

function RemoveOtp() {
  const submit = async (body: { password: string; code: string }) => {
    await call("POST", "auth/otp/remove", { body, takes401: true });
    await toSignIn(t.account.otpRemoved);
  };
  return (
    <Form
      initial={{ password: "", code: "" }}
      submit={submit}
      saveLabel={t.account.removeOtp}
      isDanger
    >
      {({ value, set, problem }) => (
        <>
          <p class="muted">{t.account.endsSessions}</p>
          <CurrentPassword
            value={value.password}
            onInput={(password) => set({ password })}
            error={problem("password")}
          />
          <TextField
            label={t.account.codeOrRecovery}
            error={problem("code")}
            autocomplete="one-time-code"
            value={value.code}
            onText={(code) => set({ code: code.trim() })}
          />
        </>
      )}
    </Form>
  );
}

interface Session {
  readonly id: string;
  readonly created_at: string;
  readonly address?: string | null;
  readonly current?: boolean;
}

/** Where one is signed in. */
function Sessions() {
  const sessions = useLoaded(() => get<{ items: readonly Session[] }>("auth/sessions"), []);
  const revoke = (id: string) =>
    attempt(async () => {
      await call("DELETE", `auth/sessions/${id}`);
      await sessions.reload();
    });
  return (
    <Card title={t.account.sessions}>
      <Shown of={sessions} rows={2}>
        {({ items }) => (
          <ul class="rows">
            {items.map(({ id, created_at, address, current }) => {
              const since = t.account.since(moment(new Date(created_at)));
              return (
                <li key={id}>
                  <div class="row-flat">
                    <span class="row-main">
                      <span>{since}</span>
                      <span class="muted small mono">{address ?? ""}</span>
                    </span>
                    {current ? <Tag kind="accent">{t.account.thisSession}</Tag> : (
                      <Button
                        small
                        label={t.account.end}
                        aria-label={`${t.account.end}: ${since}`}
                        onClick={() => void revoke(id)}
                      />
                    )}
                  </div>
                </li>
              );
            })}
          </ul>
        )}
      </Shown>
    </Card>
  );
}
