import {
  type Collection,
  COLLECTIONS,
  type CredentialKind,
  CREDENTIALS,
  type State,
} from "../model/mod.ts";

/** The revision of what an endpoint with `If-Match` changes; `undefined` where there is none. */
export function currentRevision(state: State, path: string, id: string): number | undefined {
  const [, , , place] = path.split("/"); // "", "api", "v1"
  if (place === "settings") return state.settings.revision;
  if (place === "users") return state.users.get(id)?.revision;
  if ((CREDENTIALS as readonly string[]).includes(place)) {
    return state.credentials[place as CredentialKind].get(id)?.revision;
  }
  const isCollection = (COLLECTIONS as readonly string[]).includes(place);
  return isCollection ? state.collections[place as Collection].get(id)?.revision : undefined;
}
