/** What is said of backups and of the cluster in German. */
import type { backup as englishBackup, cluster as englishCluster } from "./en_cluster.ts";

export const backup: typeof englishBackup = {
  title: "Sicherung",
  lead:
    "Alles, was hier eingestellt ist, in einer Datei: Einstellungen, Listen, Regeln, Einträge, Gruppen, Geräte, Zeitpläne, Benutzer, Token, Webhooks.",
  passphrase: "Passphrase",
  passphraseHint:
    "Nur damit steht in der Datei, was geheim ist, und verschlüsselt: Passwörter, Token, Adressen und Schlüssel von Webhooks. Mindestens 8 Zeichen.",
  download: "Sicherung laden",
  daily:
    "Jeder Knoten behält selbst eine Kopie von jedem der letzten 7 Tage, ohne Geheimes: im Ordner backups neben seinem Speicher.",
  restore: "Wiederherstellen",
  restoreLead:
    "Die Datei tritt an die Stelle von allem, was hier eingestellt ist. Vorher steht hier, was sich unterscheidet.",
  file: "Datei einer Sicherung",
  noBackup: "Das ist keine Sicherung: wähle eine Datei, die svc gemacht hat.",
  madeAt: (time, version) => `Gemacht ${time} von Version ${version}.`,
  openWith:
    "Mit dieser Passphrase wurde sie gemacht; ohne sie bleiben Passwörter, Token und Webhooks, wie sie sind.",
  compare: "Vergleichen",
  differs: "Was sich ändern würde",
  same: "Alles ist so wie in der Datei.",
  columns: {
    part: "Teil",
    added: "Neu",
    changed: "Anders",
    removed: "Fällt weg",
    kept: "Bleibt",
    left_out: "Ausgelassen",
  },
  kinds: {
    added: "neu",
    changed: "anders",
    removed: "fällt weg",
    left_out: "ausgelassen",
  },
  lacks: {
    user: "ohne Passwort",
    token: "ohne sein Geheimnis: lege es neu an",
    webhook: "ohne Adresse und Schlüssel: füge ihn neu hinzu",
  },
  others: (count) => `und ${count} weitere`,
  confirmTitle: "Alles ersetzen?",
  confirmText:
    "Was hier eingestellt ist und nicht in der Datei steht, fällt weg. Lade vorher eine Sicherung, wenn du zurück können willst.",
  done: "Wiederhergestellt",
};

export const cluster: typeof englishCluster = {
  lead: "Knoten, die eine Konfiguration teilen.",
  none: "Dieser Knoten ist in keinem Cluster; die Konfigurationsdatei bringt ihn in einen.",
  state: "Zustand",
  states: {
    leader: "führt",
    follower: "folgt",
    learner: "lernt",
    candidate: "bewirbt sich",
    unknown: "unbekannt",
    stopped: "angehalten",
  },
  thisNode: "Dieser Knoten",
  leader: "Führung",
  term: "Amtszeit",
  version: "Konfiguration",
  contact: "Führung zuletzt gehört",
  members: "Mitglieder",
  address: "Adresse",
  membership: "Mitgliedschaft",
  memberships: { voter: "stimmt ab", learner: "lernt", configured: "nur eingetragen" },
  reachable: "Erreichbar",
  yes: "Ja",
  no: "Nein",
  lag: "Rückstand",
  witness: "Zeuge",
  remove: (node) => `${node} entfernen`,
  removeText: "Er nimmt keine Änderungen mehr an und kommt nur mit leerem Speicher zurück.",
  promote: {
    title: "Führung übernehmen",
    text: "Dieser Knoten führt dann einen neuen Cluster, mit seiner eigenen Konfiguration.",
    force: "Trotzdem übernehmen macht zwei Cluster daraus.",
  },
  demote: {
    title: "Dem anderen Cluster beitreten",
    text: "Die Konfiguration dieses Knotens wird durch die des anderen Clusters ersetzt.",
    force: "Trotzdem beitreten gibt auf, was nur hier ist.",
  },
  anyway: "Trotzdem",
  done: "Erledigt",
};
