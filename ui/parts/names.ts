/** What IDs of entries are called by people. */
import { keptOf } from "../data/collections.ts";
import { serviceNames } from "../data/services.ts";
import { t } from "../text/mod.ts";

/** The name of what decided: a list, one's own rules, a service. */
export function deciderName(list: string | null): string {
  if (list === null) return "";
  if (list === "rules") return t.common.ownRules;
  if (list === "off") return t.internet.off;
  if (list.startsWith("service:")) {
    return t.common.service(serviceName(list.slice("service:".length)));
  }
  return keptOf("lists").byId.value.get(list)?.spec.name ?? list;
}

/** What a service is called; its ID as a word, where the catalogue is not at hand. */
export function serviceName(id: string): string {
  const known = serviceNames.value.get(id);
  if (known !== undefined) return known;
  const words = id.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function groupName(id: string | null): string {
  return id === null ? "" : keptOf("groups").byId.value.get(id)?.spec.name ?? id;
}

export const DEFAULT_GROUP = "gr_0000000000000000";

/** The client that these words of an entry stand for, by its ID. */
export function clientIdOf(
  { client_name, client, client_id }: {
    readonly client_name: string | null;
    readonly client: string | null;
    readonly client_id: string | null;
  },
): string | null {
  const clients = keptOf("clients").items.value ?? [];
  const found = clients.find(({ spec: { name, ids, addresses } }) =>
    name === client_name || (client_id !== null && ids.includes(client_id)) ||
    (client !== null && addresses.includes(client))
  );
  return found?.id ?? null;
}

/** A name and its parents, down to two labels: what "all below" can mean. */
export function parentsOf(name: string): string[] {
  const labels = name.replace(/\.$/, "").split(".");
  return labels.slice(0, -2).map((_, i) => labels.slice(i + 1).join("."));
}
