import type { ComponentChildren } from "preact";
import { LANGUAGES } from "../languages.ts";
import { language, setLanguage, t } from "../text/mod.ts";
import { Segmented } from "./controls.tsx";
import { Icon } from "./icon.tsx";

/** A page without navigation: a card in the middle. */
export function Alone(
  { title, children, wide = false }: {
    title: string;
    children: ComponentChildren;
    wide?: boolean;
  },
) {
  return (
    <div class={wide ? "alone-card wide" : "alone-card"}>
      <div class="alone-brand">
        <Icon name="shield" size={28} />
        <span>svc</span>
      </div>
      <h1 tabIndex={-1}>{title}</h1>
      {children}
      <footer class="alone-foot">
        <Segmented
          label={t.account.language}
          value={language.value}
          onChange={(one) => void setLanguage(one)}
          choices={(Object.keys(LANGUAGES) as (keyof typeof LANGUAGES)[])
            .map((one) => ({ value: one, label: LANGUAGES[one] }))}
        />
      </footer>
    </div>
  );
}
