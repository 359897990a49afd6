import { encodeHex } from "../../bytes/mod.ts";
import { SvcError } from "../../errors.ts";
import {
  type Credential,
  CREDENTIAL_PREFIX,
  CREDENTIAL_TYPE,
  type CredentialSpec,
  shownText,
} from "../../model/mod.ts";
import { type Delivery, findWebhookUrlProblem } from "../../webhooks/mod.ts";
import { type Call, type Endpoint, endpoint } from "../endpoint.ts";
import {
  NewWebhook,
  Webhook,
  WebhookBody,
  WebhookCollection,
  WebhookDeliveries,
  WebhookDelivery,
} from "../schemas/webhooks.ts";
import { note } from "./node.ts";
import { change } from "./resources.ts";
import { checkName } from "./tokens.ts";

const PATH = "/api/v1/webhooks";
const KEY_BYTES = 32;

type Stored = Credential<"webhooks">;
type Body = ReturnType<typeof WebhookBody.parse>;

/** A webhook as admins see it: its address, and never its key. */
function shownWebhook(
  { id, revision, created_at, updated_at, spec, secret }: Stored,
): Webhook {
  const { name, events, enabled } = spec;
  const { url } = secret;
  return { id, revision, created_at, updated_at, spec: { name, url, events, enabled } };
}

function shownDelivery(delivery: Delivery): WebhookDelivery {
  const { id, event, createdAtMs, state, attempts, status, durationMs, error } = delivery;
  const { nextTryAtMs } = delivery;
  return {
    ...{ id, event, created_at: new Date(createdAtMs).toISOString(), state, attempts, status },
    ...{ duration_ms: durationMs, error },
    next_try_at: nextTryAtMs === null ? null : new Date(nextTryAtMs).toISOString(),
  };
}

/** What is stored of it beside what is secret. @throws {SvcError} `invalid` */
function specOf({ name, url, events, enabled }: Body): CredentialSpec<"webhooks"> {
  checkName(name);
  const problem = findWebhookUrlProblem(url);
  if (problem !== null) throw new SvcError("invalid", `url: ${problem}`);
  return { name, origin: new URL(url).origin, events, enabled };
}

function find({ deps, param }: Pick<Call, "deps" | "param">): Stored {
  const one = deps.replicator.state.credentials.webhooks.get(param);
  if (one !== undefined) return one;
  throw new SvcError("not_found", `${shownText(param)}: there is no such webhook`);
}

export const webhookEndpoints: readonly Endpoint[] = [
  endpoint(`POST ${PATH}`, {
    operationId: "createWebhook",
    hasSecrets: true,
    tag: "webhooks",
    summary: "Add a webhook; the key that signs what is sent is shown this once",
    need: "admin",
    body: WebhookBody,
    status: 201,
    answer: NewWebhook,
    hasEtag: true,
    errors: ["conflict", "unavailable"],
    handle: async (call) => {
      const { body, deps } = call;
      const key = body.key ?? encodeHex(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
      const made = await change(call, {
        type: "credential_create",
        kind: "webhooks",
        id: deps.newId(CREDENTIAL_PREFIX.webhooks),
        spec: specOf(body),
        secret: { url: body.url, key },
      }) as Stored;
      const { id, revision } = made;
      return { body: { ...shownWebhook(made), key }, revision, location: `${PATH}/${id}` };
    },
  }),
  endpoint(`GET ${PATH}`, {
    operationId: "listWebhooks",
    tag: "webhooks",
    hasSecrets: true,
    summary: "Every webhook, oldest first; for admins, as their addresses are often secrets",
    need: "admin",
    answer: WebhookCollection,
    handle: ({ deps }) => {
      const { webhooks } = deps.replicator.state.credentials;
      return { body: { items: Array.from(webhooks.values(), shownWebhook) } };
    },
  }),
  endpoint(`GET ${PATH}/{id}`, {
    operationId: "getWebhook",
    tag: "webhooks",
    hasSecrets: true,
    summary: "One webhook",
    need: "admin",
    answer: Webhook,
    hasEtag: true,
    errors: ["not_found"],
    handle: (call) => {
      const one = find(call);
      return { body: shownWebhook(one), revision: one.revision };
    },
  }),
  endpoint(`PUT ${PATH}/{id}`, {
    operationId: "replaceWebhook",
    tag: "webhooks",
    hasSecrets: true,
    summary: "Replace name, address, events and state; a key that is left out stays",
    need: "admin",
    body: WebhookBody,
    takesIfMatch: true,
    answer: Webhook,
    hasEtag: true,
    errors: ["conflict", "not_found", "unavailable"],
    handle: async (call) => {
      const { body, param: id, ifMatch } = call;
      const { url, key } = body;
      const made = await change(call, {
        ...{ type: "credential_replace", kind: "webhooks", id, ifMatch, spec: specOf(body) },
        secret: { url, ...(key !== undefined && { key }) },
      }) as Stored;
      return { body: shownWebhook(made), revision: made.revision };
    },
  }),
  endpoint(`DELETE ${PATH}/{id}`, {
    operationId: "deleteWebhook",
    tag: "webhooks",
    summary: "Remove a webhook; what waits for it is dropped",
    need: "admin",
    takesIfMatch: true,
    errors: ["conflict", "not_found", "unavailable"],
    handle: async (call) => {
      const { param: id, ifMatch } = call;
      await change(call, { type: "credential_delete", kind: "webhooks", id, ifMatch });
      return {};
    },
  }),
  endpoint(`POST ${PATH}/{id}/test`, {
    operationId: "checkWebhook",
    tag: "webhooks",
    summary: "Send it an event test, from this node, once and at once; what came of it",
    need: "admin",
    answer: WebhookDelivery,
    errors: ["not_found", "unavailable"],
    handle: async (call) => {
      const { id, spec } = find(call);
      await note(call, "test", { type: CREDENTIAL_TYPE.webhooks, id }, { name: spec.name });
      return { body: shownDelivery(await call.deps.webhooks.test(id)) };
    },
  }),
  endpoint(`GET ${PATH}/{id}/deliveries`, {
    operationId: "listWebhookDeliveries",
    tag: "webhooks",
    summary: "What this node sent it, and what came of that",
    need: "admin",
    answer: WebhookDeliveries,
    errors: ["not_found"],
    handle: (call) => {
      find(call);
      return { body: { items: call.deps.webhooks.deliveries(call.param).map(shownDelivery) } };
    },
  }),
];
