/**
 * Fetches the texts of lists, tells them from what servers send in their place, and keeps them on
 * disk: a file a list (`<id>.txt`) and one `index.json`. In go the lists of the configuration; out
 * come texts for the compiler, a status a list, and what a refresh is doing. The last good text
 * stays whatever happens to the network, the server or this process. Everything else that is
 * downloaded with the lists (the catalog of services) is kept the same way, under an ID of its own.
 * Scope: net; read and write: its folder; read: the local lists. RFC 9110. @module
 */
export {
  ListKeeper,
  type ListKeeperOptions,
  type LoadedList,
  type RefreshEvent,
  type RefreshOptions,
  type RefreshOutcome,
} from "./keeper.ts";
export {
  checkListUrl,
  configListId,
  LIST_BYTES_MAX,
  type ListSource,
  type ListState,
  type ListStatus,
} from "./source.ts";
export { findLocalList, type LocalList } from "./local_path.ts";
export { DOWNLOAD_LIMITS, type DownloadLimits } from "./download.ts";
export { nodeHttpGet } from "./node_http_get.ts";
export { denoDisk } from "./deno_disk.ts";
export type { Chance, Clock, Disk, HttpGet, Lookup } from "./ports.ts";
export {
  type PresetId,
  PRESETS,
  RECOMMENDED,
  type RecommendedCategory,
  type RecommendedList,
} from "./recommended.ts";
export { decodeServices, type Service } from "./services.ts";
