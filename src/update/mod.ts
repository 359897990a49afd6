/**
 * Newer releases: what the release service at `[update] url` knows, and putting one in the place of
 * the program that runs. What a release says of itself is believed only with a signature of one of
 * the keys that are built into the program. In go requests (`http`) and the machine (`install`).
 * Scope: read, write. RFC 8032. @module
 */
export { type ApplyOptions, applyRelease, finishApplying } from "./apply.ts";
export { checkUpdate, fetchRelease, isNewer, type UpdateCheck } from "./check.ts";
export { RELEASE_KEYS } from "./keys.ts";
export { type Release, type ReleaseFile, signedText } from "./release.ts";
export { compareVersions } from "./versions.ts";
