/** Was die Seiten der Token und Webhooks auf Deutsch sagen. */
import type { access as en } from "./en_access.ts";

import { plural } from "./plural.ts";

export const access: typeof en = {
  tokens: {
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
    removeTitle: (name) => `${name} widerrufen?`,
    removeText:
      "Wer es benutzt, wird sofort auf jedem Knoten abgewiesen. Das lässt sich nicht zurücknehmen.",
  },
  webhooks: {
    lead:
      "Sagt Programmen anderswo, was hier geschieht: einer Hausautomation, einem Chat, einem Pager.",
    adminsOnly: "Nur Admins sehen Webhooks: Ihre Adressen sind oft geheim.",
    add: "Webhook hinzufügen",
    edit: "Webhook bearbeiten",
    empty: "Noch kein Webhook.",
    to: "An",
    url: "Adresse",
    urlHint: "https; http für die Netze, in die die Konfigurationsdatei Webhooks lässt",
    events: "Ereignisse",
    kinds: {
      client_seen: "Ein Gerät, das niemand kennt",
      problem_began: "Ein Problem beginnt",
      problem_ended: "Ein Problem endet",
      list_failed: "Eine Liste ist nicht zu haben",
      sign_in_locked: "Anmeldung gesperrt",
      member_lost: "Ein Mitglied fehlt",
      member_back: "Ein Mitglied ist zurück",
    },
    key: "Schlüssel",
    keyMade: "Signiert, was gesendet wird; leer wird einer erzeugt. Mindestens 16 Zeichen.",
    keyStays: "Leer: Er bleibt",
    enabled: "An: Ereignisse werden gesendet",
    made: (name) => `Schlüssel von ${name}`,
    madeText:
      "Er signiert, was gesendet wird. Kopiere ihn jetzt für den Empfänger: Er wird nur dieses eine Mal gezeigt.",
    deliveries: "Zustellungen",
    nothing: "Dieser Knoten hat seit seinem Start noch nichts gesendet.",
    test: "Ausprobieren",
    isTested: "Der Empfänger hat es angenommen.",
    isRefused: (why) => `Nicht angenommen: ${why}`,
    states: {
      waiting: "Wartet",
      delivered: "Zugestellt",
      failed: "Gescheitert",
      dropped: "Verworfen",
    },
    columns: {
      time: "Zeit",
      event: "Ereignis",
      state: "Zustand",
      outcome: "Antwort",
      next: "Versuche",
    },
    tries: (count) => plural(count, "Versuch", "Versuche"),
    nextTry: (count, time) => `${plural(count, "Versuch", "Versuche")}, der nächste ${time}`,
    removeTitle: (name) => `${name} entfernen?`,
    removeText: "Was auf ihn wartet, wird verworfen. Das lässt sich nicht zurücknehmen.",
  },
};
