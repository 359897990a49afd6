import { me, signOut } from "../data/session.ts";
import { leaves, navigate } from "../router.ts";
import { LANGUAGES } from "../languages.ts";
import { THEMES } from "../preferences.ts";
import { language, setLanguage, t } from "../text/mod.ts";
import { hasKeys, setKeys, setTheme, theme } from "../theme.ts";
import { Popover } from "./basics.tsx";
import { Check, Segmented } from "./controls.tsx";

const LANGUAGE_NAMES = Object.keys(LANGUAGES) as (keyof typeof LANGUAGES)[];

/** Who is signed in, and how the page is shown to them. */
export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const { kind, name } = me.value ?? { kind: "", name: null };
  const shown = name ?? (kind === "token" ? t.account.byToken : t.account.nobody);
  const leave = async () => {
    if (!await leaves()) return;
    await signOut();
    await navigate("/sign-in");
  };
  return (
    <Popover label={t.account.menu(shown)} icon="circle-user" kind="quiet" iconOnly>
      {(close) => (
        <div class="menu account">
          <p class="menu-head">{shown}</p>
          <div class="menu-row">
            <span>{t.account.theme}</span>
            <Segmented
              label={t.account.theme}
              value={theme.value}
              onChange={setTheme}
              choices={THEMES.map((one) => ({ value: one, label: t.account.themes[one] }))}
            />
          </div>
          <div class="menu-row">
            <span>{t.account.language}</span>
            <Segmented
              label={t.account.language}
              value={language.value}
              onChange={(one) => void setLanguage(one)}
              choices={LANGUAGE_NAMES.map((one) => ({ value: one, label: LANGUAGES[one] }))}
            />
          </div>
          <Check isOn={hasKeys.value} label={t.account.keys} onChange={setKeys} />
          {kind === "user" && <a href="/account" onClick={close}>{t.pages.account}</a>}
          <button type="button" onClick={() => (close(), onHelp())}>{t.keys.title}</button>
          {kind !== "unauthenticated" && (
            <button type="button" onClick={leave}>{t.account.signOut}</button>
          )}
        </div>
      )}
    </Popover>
  );
}
