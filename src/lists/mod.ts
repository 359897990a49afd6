/**
 * Fetches the texts of lists, tells them from what servers send in their place, and keeps them on
 * disk: a file a list (`<id>.txt`) and one `index.json`. In go the lists of the configuration; out
 * come texts for the compiler and a status a list. The last text with a rule stays whatever happens
 * to the network, the server, the user's file or this process. The catalogue of services is
 * kept the same way, under an ID of its own. Recommended lists and the public directory are for
 * choosing from. What it fetches, it fetches through a port.
 * Scope: read and write: its folder; read: the local lists. @module
 */
export {
  ListKeeper,
  type ListKeeperOptions,
  type LoadedList,
  type Refresh,
  type RefreshEvent,
  type RefreshOptions,
  type RefreshOutcome,
} from "./keeper.ts";
export {
  configListId,
  LIST_BYTES_MAX,
  type ListDownload,
  type ListSource,
  type ListState,
  type ListStatus,
  recommendedListId,
} from "./source.ts";
export { findLocalList, type LocalList } from "./local_path.ts";
export { denoDisk } from "./deno_disk.ts";
export type { Chance, Disk } from "./ports.ts";
export {
  type PresetId,
  PRESETS,
  RECOMMENDED,
  type RecommendedCategory,
  type RecommendedList,
} from "./recommended.ts";
export { type ListSize, RecommendedSizes } from "./sizes.ts";
export { DIRECTORY_URL, type DirectoryDetails, ListDirectory } from "./directory.ts";
export type { DirectoryList } from "./directory_text.ts";
export { decodeServices, type Service } from "./services.ts";
export {
  checkCatalogue,
  ServiceCatalogue,
  SERVICES_ID,
  SERVICES_URL,
  type ServicesPlace,
} from "./service_catalogue.ts";
