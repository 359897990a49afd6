/** What a rule says, in words; the service reads it, this tells it. */
import { t } from "../text/mod.ts";

export function ruleWords(rule: string): string {
  const text = rule.trim();
  // Behind the last slash of an expression; `$` in it is the end of a name.
  const isExpression = /^(?:@@)?\/.*\/(?:\$|$)/.test(text);
  const dollar = isExpression ? text.indexOf("$", text.lastIndexOf("/")) : text.lastIndexOf("$");
  const [body, modifiers] = dollar < 0
    ? [text, ""]
    : [text.slice(0, dollar), text.slice(dollar + 1)];
  const isException = body.startsWith("@@");
  const pattern = isException ? body.slice(2) : body;
  const target = targetOf(pattern);
  if (target === null) return "";
  const important = /\bimportant\b/.test(modifiers) ? ` ${t.rules.words.important}` : "";
  const rewrite = /dnsrewrite(?:=([^,]*))?/.exec(modifiers);
  if (/\bbadfilter\b/.test(modifiers)) return t.rules.words.disables(pattern);
  if (rewrite !== null) {
    return isException
      ? t.rules.words.noRewrite(target)
      : t.rules.words.rewrites(target, rewrite[1] ?? "");
  }
  return (isException ? t.rules.words.allows : t.rules.words.blocks)(target) + important;
}

function targetOf(pattern: string): string | null {
  const hosts = /^([\d.]+|[\da-f:]*:[\da-f:]+)\s+(\S+)/i.exec(pattern);
  if (hosts !== null) return t.rules.words.only(hosts[2]);
  const below = /^\|\|([^\s^|*/]+)(?:\^\|?|(?<=[^._-]))$/.exec(pattern);
  if (below !== null) return t.rules.words.below(below[1]);
  const wild = /^\*\.([^\s^|*/]+)\^?$/.exec(pattern);
  if (wild !== null) return t.rules.words.belowOnly(wild[1]);
  const address = /^\|((?:\d+\.){1,3}(?:\d+|\*)|[\da-f:]*:[\da-f:]+)\^?$/i.exec(pattern);
  if (address !== null) return t.rules.words.address(address[1]);
  const only = /^\|([\w.-]+)\^\|?$|^(\w[\w-]*(?:\.[\w-]+)+)$/.exec(pattern);
  if (only !== null) return t.rules.words.only(only[1] ?? only[2]);
  return pattern === "" || /^[!#]/.test(pattern) ? null : t.rules.words.pattern(pattern);
}
