import type { ConfigList, FilterConfig } from "./config.ts";
import { quote } from "./problem.ts";
import { boolean, isInside, oneOf, path, text, url } from "./readers.ts";
import { arrayOf, Table } from "./table.ts";

/** Most lists; each takes a number in every group's bit set. */
const LIST_COUNT_MAX = 1_000;
/** Most rules of the file; more belong in a list. */
const RULE_COUNT_MAX = 100_000;
/** A name has 253 characters; modifiers take the rest. */
const RULE_LENGTH_MAX = 1_024;
const NAME_LENGTH_MAX = 128;

/** Reads `[filter]`. */
export function readFilter(t: Table, directory: string): FilterConfig {
  const localListsDir = t.read("local_lists_dir", path(directory), "lists");
  const names = new Set<string>();
  const services = t.read("services", boolean, true);
  return {
    lists: t.tables("lists", LIST_COUNT_MAX, (list) => {
      const read = readList(list, directory, localListsDir);
      if (read !== null && names.has(read.name)) {
        return list.place.at("name").problem(`is ${quote(read.name)} once more: rename one`);
      }
      if (read !== null) names.add(read.name);
      return read;
    }),
    rules: t.read("rules", arrayOf(text(RULE_LENGTH_MAX), RULE_COUNT_MAX), []),
    services,
    servicesFile: t.optional("services_file", path(directory)),
    servicesUrl: t.optional("services_url", url({ plainHttp: false })),
    directory: t.read("directory", boolean, true),
    directoryUrl: t.optional("directory_url", url({ plainHttp: false })),
    defaultLists: t.read("default_lists", boolean, true),
    onFailure: t.read("on_failure", oneOf("open", "closed"), "open"),
    localListsDir,
  };
}

function readList(t: Table, directory: string, localListsDir: string): ConfigList | null {
  const name = t.required("name", text(NAME_LENGTH_MAX));
  const address = t.optional("url", url({ plainHttp: false }));
  const file = t.optional("path", path(directory));
  if (t.has("url") === t.has("path")) {
    return t.place.problem(
      t.has("url") ? "has both url and path: take one away" : "has neither url nor path: set one",
    );
  }
  if (name === null) return null;
  if (address !== null) return { kind: "url", name, url: address };
  if (file === null) return null;
  const isReadable = isInside(file, localListsDir);
  if (!isReadable) {
    t.place.at("path").problem(
      `is outside of filter.local_lists_dir, so the list is skipped: move the file into ` +
        quote(localListsDir),
      "check",
    );
  }
  return { kind: "path", name, path: file, isInside: isReadable };
}
