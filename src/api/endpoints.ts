import { accountEndpoints } from "./endpoints/accounts.ts";
import { backupEndpoints } from "./endpoints/backup.ts";
import { clientsSeenEndpoints } from "./endpoints/clients_seen.ts";
import { clusterEndpoints } from "./endpoints/cluster.ts";
import { listEndpoints } from "./endpoints/lists.ts";
import { logEndpoints } from "./endpoints/logs.ts";
import { migrateEndpoints } from "./endpoints/migrate.ts";
import { nodeEndpoints } from "./endpoints/node.ts";
import { profileEndpoints } from "./endpoints/profiles.ts";
import { resourceEndpoints } from "./endpoints/resources.ts";
import { rulesBatchEndpoints } from "./endpoints/rules_batch.ts";
import { settingsEndpoints } from "./endpoints/settings.ts";
import { tokenEndpoints } from "./endpoints/tokens.ts";
import { userEndpoints } from "./endpoints/users.ts";
import { webhookEndpoints } from "./endpoints/webhooks.ts";
import { type Endpoint, endpoint } from "./endpoint.ts";
import { Document } from "./schemas/node.ts";
import { documentOf, type OpenApiDocument } from "./openapi.ts";

/** Every endpoint, in the order in which paths are tried: one that is spelled out comes first. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...nodeEndpoints,
  ...profileEndpoints,
  ...listEndpoints, // Before the collection of lists: `refresh` is no ID.
  ...rulesBatchEndpoints, // Before the collection of rules, likewise.
  ...clientsSeenEndpoints, // Before the collection of clients, likewise.
  ...resourceEndpoints,
  ...settingsEndpoints,
  ...backupEndpoints,
  ...migrateEndpoints,
  ...userEndpoints,
  ...tokenEndpoints,
  ...webhookEndpoints,
  ...accountEndpoints,
  ...logEndpoints,
  ...clusterEndpoints,
  endpoint("GET /api/v1/openapi.json", {
    operationId: "getDocument",
    tag: "node",
    summary: "This document",
    need: "viewer",
    answer: Document,
    handle: () => ({ body: { ...openApiDocument() } }),
  }),
];

let made: OpenApiDocument | undefined;

/** The OpenAPI 3.1 document of every endpoint; made when it is first asked for. */
export function openApiDocument(): OpenApiDocument {
  return made ??= documentOf(ENDPOINTS);
}
