/** What a full house keeps: thousands of clients, hundreds of groups and many rules. */
import assert from "node:assert/strict";
import type { Api } from "./api.ts";

// deno-lint-ignore no-explicit-any -- answers of every shape
type Json = any;

/** The address of a client. */
export const addressOf = (i: number) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
const idOf = (prefix: string, i: number) => `${prefix}_${(i + 1).toString(16).padStart(16, "0")}`;

/** Puts clients, groups and rules there at once. */
export async function fillStore(
  api: Api,
  size: { readonly clients: number; readonly groups: number; readonly rules: number },
): Promise<void> {
  const backup: Json = await api.call("GET", "backup");
  const now = new Date().toISOString();
  const many = (prefix: string, count: number, spec: (i: number) => Json) =>
    Array.from({ length: count }, (_, i) => ({
      id: idOf(prefix, i),
      revision: 1,
      created_at: now,
      updated_at: now,
      spec: spec(i),
    }));
  const [group] = backup.groups;
  const restored = await api.call("POST", "restore", {
    ...backup,
    groups: [
      group,
      ...many("gr", size.groups, (i) => ({
        ...group.spec,
        name: `Group ${i}`,
        blocked_services: i % 3 === 0 ? [{ service: "youtube" }] : [],
      })),
    ],
    clients: many("cl", size.clients, (i) => ({
      name: `Device ${i}`,
      addresses: [addressOf(i)],
      ids: [],
      group: i % 2 === 0 ? group.id : idOf("gr", i % size.groups),
      paused_until: null,
    })),
    rules: many("ru", size.rules, (i) => ({
      rule: `||host${i}.blocked.example^`,
      enabled: true,
      comment: "",
      managed_by: "api",
      expires_at: null,
      groups: [],
      clients: [],
    })),
  });
  assert.equal(restored.done, true, JSON.stringify(restored));
}
