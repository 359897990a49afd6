import {
  decodeSettings,
  DEFAULT_SETTINGS,
  describeProblems,
  type Envelope,
  type Settings,
} from "../model/mod.ts";
import { type Item, lost, type Wishes } from "./wishes.ts";

/**
 * The settings with those that are wished for, where nobody has chosen others here; `null`: they stay
 * as they are. `items` hears of each.
 */
export function planSettings(
  { settings: wishes, access }: Wishes,
  { spec, revision }: Envelope<Settings>,
  items: Item[],
): { readonly spec: Settings; readonly revision: number } | null {
  let next = spec;
  for (const { field, value, adapted } of wishes) {
    const name = `${field} ${value}`;
    const decoded = decodeSettings({ ...next, [field]: value });
    if (!decoded.ok) {
      items.push(lost("setting", name, describeProblems(decoded.problems, field)));
    } else if (decoded.spec[field] === spec[field]) {
      items.push({ type: "setting", name, outcome: "there_already", detail: null });
    } else if (spec[field] !== DEFAULT_SETTINGS[field]) {
      items.push(lost("setting", name, `it is ${spec[field]} here, and stays`));
    } else {
      next = decoded.spec;
      const outcome = adapted === null ? "added" : "adapted";
      items.push({ type: "setting", name, outcome, detail: adapted });
    }
  }
  next = withAccess(next, access, items);
  return next === spec ? null : { spec: next, revision };
}

function withAccess(settings: Settings, wished: Wishes["access"], items: Item[]): Settings {
  const { allowed: there } = settings.access;
  // Those of a fresh node give way to those of whoever chose some.
  const isFresh = JSON.stringify(there) === JSON.stringify(DEFAULT_SETTINGS.access.allowed);
  const allowed = entriesOf("allowed", isFresh ? [] : there, wished.allowed, isFresh, items);
  const disallowed = entriesOf(
    "disallowed",
    settings.access.disallowed,
    wished.disallowed,
    true,
    items,
  );
  const access = { allowed: allowed.length === 0 ? there : allowed, disallowed };
  if (JSON.stringify(access) === JSON.stringify(settings.access)) return settings;
  const decoded = decodeSettings({ ...settings, access });
  if (decoded.ok) return decoded.spec;
  items.push(lost("access", "who may ask", describeProblems(decoded.problems, "access")));
  return settings;
}

/** The entries of a list with those that are wished for, where any may be added. */
function entriesOf(
  list: "allowed" | "disallowed",
  there: readonly string[],
  wished: readonly string[],
  mayAdd: boolean,
  items: Item[],
): readonly string[] {
  const entries = [...there];
  for (const written of wished) {
    const name = `${list} ${written}`;
    const decoded = decodeSettings({ access: { [list]: [written.toLowerCase()] } });
    if (!decoded.ok) {
      items.push(lost("access", name, decoded.problems[0].message));
      continue;
    }
    const [entry] = decoded.spec.access[list];
    if (entries.includes(entry)) {
      items.push({ type: "access", name, outcome: "there_already", detail: null });
    } else if (!mayAdd) {
      items.push(lost("access", name, "others are let in here, and that stays"));
    } else {
      entries.push(entry);
      items.push({ type: "access", name, outcome: "added", detail: null });
    }
  }
  return entries;
}
