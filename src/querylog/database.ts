import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path/posix";
import { DatabaseSync } from "node:sqlite";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { DamagedSegment } from "./segment.ts";

const FILE = "querylog.db";
/** What a file that can't be used is renamed to, with the time behind it. */
const BAD = "querylog.db.bad-";
/** Files set aside that are kept, the newest ones: they are for people to look at. */
const BAD_FILES_MAX = 2;
/** Files that SQLite has beside its own. */
const COMPANIONS = ["-wal", "-shm"];

/** "svcq", and what is inside: a file of another version is set aside. */
const APPLICATION_ID = 0x7376_6371;
const SCHEMA_VERSION = 2;
/** Had a row and three indexes for each entry, which are moved to segments as time allows. */
const ROWS_VERSION = 1;

/** Longest wait for a former isolate of ours to let go of the file. */
const BUSY_MS_MAX = 2_000;
const CACHE_KIB = 4_096;
/** Pages of the write-ahead log before it goes into the file, and the log's bytes at most after it. */
const CHECKPOINT_PAGES = 2_000;
const LOG_BYTES_MAX = 8 * 1024 * 1024;

// What SQLite says (its result codes), without the upper bits that tell more.
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
const CODE_MASK = 0xff;

/** Texts that entries share; those of names are found by any three letters in a row. */
const SCHEMA = `
PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${SCHEMA_VERSION};
CREATE TABLE names (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, used INTEGER NOT NULL) STRICT;
CREATE VIRTUAL TABLE names_text USING fts5 (
  text, content = 'names', content_rowid = 'id', tokenize = 'trigram', columnsize = 0
);
CREATE TABLE clients (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, used INTEGER NOT NULL) STRICT;
CREATE TABLE kinds (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, used INTEGER NOT NULL) STRICT;
CREATE TABLE rules (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, used INTEGER NOT NULL) STRICT;
CREATE TABLE answers (id INTEGER PRIMARY KEY, text TEXT NOT NULL, used INTEGER NOT NULL) STRICT;
CREATE TABLE epochs (epoch INTEGER PRIMARY KEY, first INTEGER NOT NULL) STRICT;
CREATE TABLE hours (hour INTEGER PRIMARY KEY, counts TEXT NOT NULL, top TEXT NOT NULL) STRICT;
CREATE TABLE days (day INTEGER PRIMARY KEY, top TEXT NOT NULL) STRICT;
`;

/**
 * Entries, some thousand in a row of the table; those before the floor are removed. What searches look
 * at comes first, and the shortest before that: what lies behind is not read for it.
 */
const SEGMENTS = `
CREATE TABLE segments (
  first INTEGER PRIMARY KEY,
  last INTEGER NOT NULL,
  count INTEGER NOT NULL,
  outcomes INTEGER NOT NULL,
  width INTEGER NOT NULL,
  clients BLOB NOT NULL,
  kinds BLOB NOT NULL,
  rules BLOB NOT NULL,
  names BLOB NOT NULL,
  answers BLOB NOT NULL,
  columns BLOB NOT NULL
) STRICT;
CREATE TABLE floor (id INTEGER NOT NULL) STRICT;
INSERT INTO floor VALUES (0);
`;

/** What makes a file with rows one with segments. */
const FROM_ROWS = `
PRAGMA user_version = ${SCHEMA_VERSION};
DROP INDEX entries_name;
DROP INDEX entries_client;
DROP INDEX entries_outcome;
`;

/** What files lack that an earlier program began; it has no use for it. */
const ADDED = `
CREATE TABLE IF NOT EXISTS minutes (hour INTEGER PRIMARY KEY, counts TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS sharers (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS client_hours (
  client INTEGER NOT NULL, hour INTEGER NOT NULL, counts TEXT NOT NULL, top TEXT NOT NULL,
  PRIMARY KEY (client, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS client_hours_hour ON client_hours (hour);
CREATE TABLE IF NOT EXISTS client_hours_since (hour INTEGER PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS client_days (
  client INTEGER NOT NULL, day INTEGER NOT NULL, counts TEXT NOT NULL,
  PRIMARY KEY (client, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS client_days_day ON client_days (day);
`;

/** Says whether the file is damaged, or none of ours: no second try helps. */
export function isCorrupt(error: unknown): boolean {
  const code = codeOf(error) & CODE_MASK;
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB || error instanceof ForeignFile ||
    error instanceof DamagedSegment;
}

/** A file that another version, or another program, has written. */
class ForeignFile extends Error {}

function codeOf(error: unknown): number {
  const { errcode } = error as { errcode?: unknown };
  return typeof errcode === "number" ? errcode : 0;
}

/**
 * Opens the log's file in a directory, or begins one. A file that can't be used is set aside, so that
 * queries are logged again at once.
 *
 * @throws {SvcError} `unavailable`, when there can be no file: the disk is full, or not writable.
 */
export function openDatabase(directory: string, nowMs: number): DatabaseSync {
  const path = join(directory, FILE);
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    try {
      return open(path);
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      setAside(directory, nowMs, error);
      return open(path);
    }
  } catch (error) {
    throw new SvcError("unavailable", `store.path: ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Renames a file that can't be used, with what belongs to it, and keeps the newest few of those. */
export function setAside(directory: string, nowMs: number, error: unknown): void {
  const time = new Date(nowMs).toISOString().replace(/[-:]|\.\d+/g, "");
  const bad = `${BAD}${time}`;
  log.error("the query log's file can't be used: it is set aside, and a new one begun", {
    kept: join(directory, bad),
    error: messageOf(error),
  });
  renameSync(join(directory, FILE), join(directory, bad));
  for (const companion of COMPANIONS) {
    rmSync(join(directory, FILE + companion), { force: true });
  }
  const former = readdirSync(directory).filter((name) => name.startsWith(BAD)).sort();
  for (const name of former.slice(0, -BAD_FILES_MAX)) rmSync(join(directory, name));
}

function open(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: BUSY_MS_MAX });
  try {
    const version = pragma(db, "user_version");
    const isNew = pragma(db, "page_count") === 0;
    if (!isNew) {
      const id = pragma(db, "application_id");
      if (id !== APPLICATION_ID || (version !== SCHEMA_VERSION && version !== ROWS_VERSION)) {
        throw new ForeignFile(`it is of version ${version}, and this is ${SCHEMA_VERSION}`);
      }
    }
    // Before anything is written: pages that are free go back to the system in small steps.
    if (isNew) db.exec("PRAGMA auto_vacuum = INCREMENTAL");
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY");
    db.exec(`PRAGMA cache_size = ${-CACHE_KIB}; PRAGMA journal_size_limit = ${LOG_BYTES_MAX}`);
    db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    if (isNew) db.exec(`BEGIN; ${SCHEMA} ${SEGMENTS} COMMIT`);
    else if (version === ROWS_VERSION) db.exec(`BEGIN; ${FROM_ROWS} ${SEGMENTS} COMMIT`);
    else dropRows(db);
    db.exec(ADDED);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Removes the table of rows once it is empty, which nobody writes to behind another start. */
function dropRows(db: DatabaseSync): void {
  const hasRows = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'entries'").get();
  if (hasRows === undefined) return;
  if (db.prepare("SELECT 1 FROM entries").get() === undefined) db.exec("DROP TABLE entries");
}

/** The value of a pragma that is one number. */
export function pragma(db: DatabaseSync, name: string): number {
  return Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? { value: 0 })[0]);
}
