import { SvcError } from "../../errors.ts";
import {
  type Outcome,
  type Plan,
  planMigration,
  sourceBase,
  titleOf,
  wishesOf,
} from "../../migrate/mod.ts";
import { type Call, type Endpoint, endpoint } from "../endpoint.ts";
import { MigrateBody, Migrated, MigrateQuery } from "../schemas/migrate.ts";
import { note } from "./node.ts";
import { change } from "./resources.ts";

/** What is planned on a state that has moved since is planned anew, so often at most. */
const TRIES_MAX = 3;
const MOVED: readonly string[] = ["conflict", "not_found", "revision_mismatch"];

export const migrateEndpoints: readonly Endpoint[] = [
  endpoint("POST /api/v1/migrate", {
    operationId: "migrateConfiguration",
    tag: "backup",
    summary: "Add what AdGuard Home or Pi-hole has and this service has not: one change, or none",
    need: "admin",
    query: MigrateQuery,
    body: MigrateBody,
    answer: Migrated,
    errors: ["conflict", "unavailable"],
    handle: async (call) => {
      const { body, query, deps } = call;
      const base = sourceBase(body.product, body.url);
      const from = { product: body.product, url: base.origin };
      // Who had this node ask where is on record, whatever comes of it.
      await note(call, "migrate_read", { type: "config", id: null }, from);
      const source = await deps.migration.read(body);
      const place = {
        services: servicesOf(call),
        timeZone: deps.migration.timeZone,
      };
      const wishes = wishesOf(source, place);
      const title = titleOf(source);
      const plan = () =>
        planMigration(`${title} at ${base.host}`, wishes, deps.replicator.state, place);
      const planned = query.dry_run ? plan() : await carriedOut(call, plan);
      const { items } = planned;
      return {
        body: {
          done: !query.dry_run,
          source: title,
          counts: countsOf(planned),
          items,
          fragment: wishes.fragment,
        },
      };
    },
  }),
];

/** The IDs of services that can be blocked; `null` while there is no catalogue. */
function servicesOf({ deps }: Call): ReadonlySet<string> | null {
  const { items } = deps.lists.services();
  return items.length === 0 ? null : new Set(items.map(({ id }) => id));
}

async function carriedOut(call: Call, plan: () => Plan): Promise<Plan> {
  for (let tries = 1;; tries++) {
    const planned = plan();
    if (planned.change === null) return planned;
    try {
      await change(call, planned.change);
      return planned;
    } catch (error) {
      const hasMoved = error instanceof SvcError && MOVED.includes(error.code);
      if (!hasMoved || tries === TRIES_MAX) throw error;
    }
  }
}

function countsOf({ items }: Plan): Record<Outcome, number> {
  const counts = { added: 0, there_already: 0, adapted: 0, not_possible: 0 };
  for (const { outcome } of items) counts[outcome]++;
  return counts;
}
