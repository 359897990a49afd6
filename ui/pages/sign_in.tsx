import { useEffect } from "preact/hooks";
import { me } from "../data/session.ts";
import { SignInForm } from "../parts/sign_in_form.tsx";
import { Alone } from "../parts/alone.tsx";
import { localPath, navigate, param } from "../router.ts";
import { t } from "../text/mod.ts";

export default function SignIn() {
  const go = () => void navigate(localPath(param("next")), true);
  useEffect(() => {
    if (me.value !== null) go();
  }, []);
  return (
    <Alone title={t.pages.signIn}>
      <SignInForm onDone={go} />
      <p class="muted small">{t.signIn.lost}</p>
    </Alone>
  );
}
