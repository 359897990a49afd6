import { type Endpoint, endpoint } from "../endpoint.ts";
import { ClientsSeen, ClientsSeenQuery } from "../schemas/clients_seen.ts";

export const clientsSeenEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/clients/seen", {
    operationId: "listClientsSeen",
    tag: "clients",
    summary: "Addresses that asked lately, known or not, with what the local network calls them",
    need: "viewer",
    query: ClientsSeenQuery,
    answer: ClientsSeen,
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({ body: await deps.logs.clientsSeen(query) }),
  }),
];
