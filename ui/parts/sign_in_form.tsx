/** Name and password, a code where there is a second factor, a recovery code, or the token. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError } from "../data/api.ts";
import { signIn, signInByRecovery, signInByToken } from "../data/session.ts";
import { t } from "../text/mod.ts";
import { Button } from "./basics.tsx";
import { Field } from "./controls.tsx";
import { errorText } from "./error_text.ts";
import { countdown } from "./format.ts";

type Way = "password" | "recovery" | "token";

export function SignInForm(
  { onDone, begin = "password" }: { onDone: () => void; begin?: Way },
) {
  const way = useSignal<Way>(begin);
  const needsCode = useSignal(false);
  const fields = useSignal({ name: "", password: "", code: "", token: "" });
  const problem = useSignal<string | null>(null);
  const lockedUntilMs = useSignal(0);
  const isBusy = useSignal(false);
  const now = useSignal(Date.now());
  useEffect(() => {
    if (lockedUntilMs.value <= Date.now()) return;
    const timer = setInterval(() => {
      now.value = Date.now();
      if (now.value >= lockedUntilMs.value) clearInterval(timer);
    }, 1_000);
    return () => clearInterval(timer);
  }, [lockedUntilMs.value]);
  const leftMs = lockedUntilMs.value - now.value;
  const set = (field: keyof typeof fields.value) => (event: Event) => {
    fields.value = { ...fields.value, [field]: (event.currentTarget as HTMLInputElement).value };
  };
  const onSubmit = async (event: Event) => {
    event.preventDefault();
    problem.value = null;
    isBusy.value = true;
    const { name, password, code, token } = fields.value;
    const form = event.currentTarget as HTMLElement;
    try {
      if (way.value === "token") await signInByToken(token);
      else if (way.value === "recovery") await signInByRecovery(name, password, code);
      else await signIn(name, password, code);
      onDone();
    } catch (error) {
      if (!(error instanceof ApiError)) problem.value = errorText(error);
      else if (error.code === "otp_required") {
        problem.value = needsCode.value ? t.signIn.wrongCode : null;
        needsCode.value = true;
        setTimeout(() => form.querySelector<HTMLElement>("[name=code]")?.focus());
      } else if (error.status === 429) {
        now.value = Date.now();
        lockedUntilMs.value = Date.now() + (error.retryAfterS ?? 300) * 1_000;
      } else if (error.status === 401) {
        problem.value = way.value === "token" ? t.signIn.wrongToken : t.signIn.wrong;
      } else problem.value = errorText(error);
    } finally {
      isBusy.value = false;
    }
  };
  const { name, password, code, token } = fields.value;
  return (
    <form class="form" onSubmit={onSubmit}>
      {way.value === "token"
        ? (
          <Field label={t.signIn.token} hint={t.signIn.tokenHint}>
            {(ids) => (
              <input
                {...ids}
                type="password"
                autocomplete="off"
                value={token}
                onInput={set("token")}
              />
            )}
          </Field>
        )
        : (
          <>
            <Field label={t.signIn.name}>
              {(ids) => (
                <input
                  {...ids}
                  autocomplete="username"
                  autocapitalize="none"
                  value={name}
                  onInput={set("name")}
                />
              )}
            </Field>
            <Field label={t.signIn.password}>
              {(ids) => (
                <input
                  {...ids}
                  type="password"
                  autocomplete="current-password"
                  value={password}
                  onInput={set("password")}
                />
              )}
            </Field>
            {(needsCode.value || way.value === "recovery") && (
              <Field label={way.value === "recovery" ? t.signIn.recoveryCode : t.signIn.code}>
                {(ids) => (
                  <input
                    {...ids}
                    name="code"
                    autocomplete="one-time-code"
                    inputMode={way.value === "recovery" ? "text" : "numeric"}
                    value={code}
                    onInput={set("code")}
                  />
                )}
              </Field>
            )}
          </>
        )}
      {leftMs > 0 && <p class="problem" role="alert">{t.signIn.locked(countdown(leftMs))}</p>}
      {problem.value !== null && <p class="problem" role="alert">{problem.value}</p>}
      <Button
        kind="primary"
        type="submit"
        class="wide"
        label={t.signIn.go}
        isBusy={isBusy.value}
        disabled={leftMs > 0}
      />
      <div class="other-ways">
        {way.value !== "password" && (
          <Button
            small
            kind="quiet"
            label={t.signIn.byPassword}
            onClick={() => way.value = "password"}
          />
        )}
        {way.value === "password" && needsCode.value && (
          <Button
            small
            kind="quiet"
            label={t.signIn.byRecovery}
            onClick={() => way.value = "recovery"}
          />
        )}
        {way.value !== "token" && (
          <Button
            small
            kind="quiet"
            label={t.signIn.byToken}
            onClick={() => way.value = "token"}
          />
        )}
      </div>
    </form>
  );
}
