import { type Endpoint, endpoint } from "../endpoint.ts";
import {
  ClientSeries,
  ClientSeriesQuery,
  ClientsSeen,
  ClientsSeenQuery,
} from "../schemas/clients_seen.ts";

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
  endpoint("GET /api/v1/clients/series", {
    operationId: "listClientSeries",
    tag: "clients",
    summary: "Queries of some clients by the hour, and how many clients asked in each",
    need: "viewer",
    query: ClientSeriesQuery,
    answer: ClientSeries,
    errors: ["unavailable"],
    handle: async ({ deps, query }) => ({ body: await deps.logs.clientSeries(query) }),
  }),
];
