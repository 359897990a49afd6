/** The fields that a change touched, before and after; words that differ are marked. */
import { t } from "../text/mod.ts";
import { visible } from "./format.ts";

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  if (value === null || value === undefined) return {};
  return typeof value === "object" && !Array.isArray(value) ? value as Fields : { "": value };
}

function textOf(value: unknown): string {
  if (value === undefined) return "";
  return visible(typeof value === "string" ? value : JSON.stringify(value));
}

export function Difference({ before, after }: { before: unknown; after: unknown }) {
  const [was, is] = [fieldsOf(before), fieldsOf(after)];
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]));
  if (names.length === 0) return <p class="muted">{t.audit.same}</p>;
  return (
    <dl class="difference">
      {names.map((name) => (
        <div key={name}>
          <dt>{name}</dt>
          {was[name] !== undefined && (
            <Line sign="−" text={textOf(was[name])} other={textOf(is[name])} />
          )}
          {is[name] !== undefined && (
            <Line sign="+" text={textOf(is[name])} other={textOf(was[name])} />
          )}
        </div>
      ))}
    </dl>
  );
}

function Line({ sign, text, other }: { sign: "+" | "−"; text: string; other: string }) {
  const words = text.split(/(?<=[\s,:{}[\]"])|(?=[\s,:{}[\]"])/);
  const others = new Set(other.split(/(?<=[\s,:{}[\]"])|(?=[\s,:{}[\]"])/));
  return (
    <dd class={sign === "+" ? "plus" : "minus"}>
      <span class="sign">{sign}</span>
      <span class="for-ears">{sign === "+" ? t.audit.after : t.audit.before}</span>
      <bdi>
        {words.map((word, i) =>
          others.has(word) || other === "" ? word : <mark key={i}>{word}</mark>
        )}
      </bdi>
    </dd>
  );
}
