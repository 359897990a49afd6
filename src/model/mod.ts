/**
 * What the service is configured to do at run time: the replicated objects with their JSON
 * spelling and their defaults. Scope: none. @module
 */
export {
  type AccessSettings,
  BlockResponse,
  DEFAULT_SETTINGS,
  FRESH_NODE_ALLOWED,
  FRESH_NODE_SETTINGS,
  type Settings,
} from "./settings.ts";
