/**
 * A configuration in one file: settings, resources and users, as JSON with the version of its form.
 * What is secret of users is in it only under a passphrase, by which the whole file is held to be as
 * it was made. In goes a state, out comes a file; an untrusted file comes back as a change, or as all
 * that is wrong with it. Scope: none; Argon2 is of `auth`. RFC 8259, 9106; NIST SP 800-38D. @module
 */
export {
  BACKUP_BYTES_MAX,
  BACKUP_VERSION,
  BackupFile,
  encodeBackup,
  makeBackup,
} from "./backup_file.ts";
export { readBackup } from "./read_backup.ts";
