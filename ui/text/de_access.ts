/** Was die Seiten der Token und Webhooks auf Deutsch sagen. */
import type { access as en } from "./en_access.ts";

export const access: typeof en = {
  tokens: {
    one: "Token",
    lead:
      "Programme zeigen ein Token, statt sich anzumelden; jedes hat sein eigenes, das sich widerrufen lässt.",
    add: "Token hinzufügen",
    edit: "Token bearbeiten",
    empty: "Noch kein Token.",
    nameHint: "So nennt das Audit-Protokoll, wer es sendet.",
    ends: "Gültig bis",
    endsIn: "Gültig für",
    periods: {
      stays: "Wie bisher",
      forGood: "Unbegrenzt",
      30: "30 Tage",
      90: "90 Tage",
      365: "Ein Jahr",
    },
    ended: "Abgelaufen",
    used: "Zuletzt benutzt",
    never: "Nie",
    made: (name) => `Token von ${name}`,
    madeText: "Kopiere es jetzt: Es wird nirgends aufbewahrt und nur dieses eine Mal gezeigt.",
    revoke: "Widerrufen",
    revokeTitle: (name) => `${name} widerrufen?`,
    revokeText:
      "Wer es benutzt, wird sofort auf jedem Knoten abgewiesen. Das lässt sich nicht zurücknehmen.",
  },
};
