import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../data/api.ts";
import { Alone } from "../parts/alone.tsx";
import { Form } from "../parts/form.tsx";
import { NewPassword } from "../parts/new_password.tsx";
import { hideParams, param } from "../router.ts";
import { t } from "../text/mod.ts";

/** A link that an admin made, good once; its token leaves the address bar at once. */
export default function Reset() {
  const token = useSignal("");
  const isDone = useSignal(false);
  useEffect(() => {
    token.value = param("token");
    hideParams();
  }, []);
  const submit = async ({ password }: { password: string }) => {
    await call("POST", "auth/reset", { body: { token: token.value, password }, takes401: true });
    isDone.value = true;
  };
  return (
    <Alone title={t.pages.reset}>
      {isDone.value
        ? (
          <>
            <p>{t.signIn.resetDone}</p>
            <a class="button primary wide" href="/sign-in">{t.signIn.go}</a>
          </>
        )
        : (
          <>
            <p class="muted">{t.signIn.resetText}</p>
            <Form
              initial={{ password: "" }}
              submit={submit}
              saveLabel={t.signIn.resetGo}
              warns={false}
            >
              {({ value, set, problem }) => (
                <NewPassword
                  value={value.password}
                  onInput={(password) => set({ password })}
                  error={problem("password")}
                />
              )}
            </Form>
          </>
        )}
    </Alone>
  );
}
