import { parseIp } from "../addr/mod.ts";
import { SvcError } from "../errors.ts";
import { shownText, type State } from "../model/mod.ts";

/** Candidates that a refusal names; the rest it counts. */
const NAMED_MAX = 5;

function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

/**
 * Whom a text means: an address as it is, be it of a client or not; else the ID of the client that
 * has it for an ID, for a client ID of its queries, or for its name.
 *
 * @throws {SvcError} `bad_request`, where it is nobody, or several.
 */
export function findAsker({ collections: { clients } }: State, text: string): string {
  if (parseIp(text) !== null) return text;
  if (clients.has(text)) return text;
  const all = [...clients.values()];
  const clientId = text.toLowerCase();
  const byId = all.find(({ spec }) => spec.ids.includes(clientId));
  if (byId !== undefined) return byId.id;
  const exact = all.filter(({ spec }) => spec.name === text);
  // As people type it, where nobody is called so to the letter.
  const named = exact.length > 0
    ? exact
    : all.filter(({ spec }) => folded(spec.name) === folded(text));
  if (named.length === 1) return named[0].id;
  if (named.length === 0) {
    throw new SvcError(
      "bad_request",
      `client: ${shownText(text)} is no address, and no client has it for an ID or name`,
    );
  }
  const more = named.length - NAMED_MAX;
  const shown = named.slice(0, NAMED_MAX).map(({ id, spec }) => `${id} (${shownText(spec.name)})`)
    .join(", ");
  throw new SvcError(
    "bad_request",
    `client: ${named.length} clients are called ${shownText(text)}: ask by one of their IDs: ` +
      shown + (more > 0 ? ` and ${more} more` : ""),
  );
}
