import * as z from "zod";
import {
  CREDENTIAL_PREFIX,
  CREDENTIAL_SPECS,
  WEBHOOK_KEY_LENGTH,
  WEBHOOK_URL_LENGTH_MAX,
} from "../../model/mod.ts";
import {
  answer,
  count,
  EXAMPLE_TIME,
  exampleOf,
  request,
  type Shown,
  timestamp,
} from "./common.ts";
import { envelope, exampleHead } from "./resources.ts";

const { origin: _, ...fields } = CREDENTIAL_SPECS.webhooks.shape;
const url = z.string().min(1).max(WEBHOOK_URL_LENGTH_MAX).meta({
  format: "uri",
  description:
    "http or https, without name, password and fragment; http to webhooks.networks alone",
});

const EXAMPLE = {
  name: "Home Assistant",
  url: "http://192.168.1.5:8123/api/webhook/svc-4711",
  events: ["client_seen", "problem_began"],
  enabled: true,
} as const satisfies Shown<z.input<typeof WebhookSpec>>;

const WebhookSpec = z.strictObject({ ...fields, url });
export const WebhookBody = request(
  "WebhookBody",
  WebhookSpec.extend({
    key: z.string().min(WEBHOOK_KEY_LENGTH.min).max(WEBHOOK_KEY_LENGTH.max).optional()
      .describe("signs what is sent; left out: one is made, or the one that there is stays"),
  }),
  { ...EXAMPLE, events: [...EXAMPLE.events] },
);
const EXAMPLE_WEBHOOK = {
  ...exampleHead(CREDENTIAL_PREFIX.webhooks),
  spec: { ...EXAMPLE, events: [...EXAMPLE.events] },
};
const WebhookSpecAnswer = answer("WebhookSpec", WebhookSpec, EXAMPLE_WEBHOOK.spec);
export const Webhook = answer("Webhook", envelope(WebhookSpecAnswer), EXAMPLE_WEBHOOK);
export type Webhook = Shown<z.infer<typeof Webhook>>;
export const WebhookCollection = answer(
  "WebhookCollection",
  z.object({ items: z.array(Webhook).describe("oldest first") }),
  { items: [EXAMPLE_WEBHOOK] },
);
export const NewWebhook = answer(
  "NewWebhook",
  Webhook.extend({ key: z.string().describe("signs what is sent; shown this once") }),
  { ...EXAMPLE_WEBHOOK, key: "3f".repeat(32) },
);

export const WebhookDelivery = answer(
  "WebhookDelivery",
  z.object({
    id: z.string().describe("sent as Svc-Delivery, the same with each try"),
    event: z.string().describe("what it is sent for; test: somebody tried it"),
    created_at: timestamp.describe("when that happened"),
    state: z.enum(["waiting", "delivered", "failed", "dropped"])
      .describe("dropped: too many waited, or the webhook was turned off or removed"),
    attempts: count.describe("how often it was sent"),
    status: z.int().nullable().describe("of the last try; null: nothing was answered"),
    duration_ms: count.nullable().describe("of the last try"),
    error: z.string().nullable().describe("why the last try failed; null: it did not"),
    next_try_at: timestamp.nullable().describe("null: there is none, or it is sent just now"),
  }),
  {
    id: "wd_586105ff9c383d7e",
    event: "problem_began",
    created_at: EXAMPLE_TIME,
    state: "delivered",
    attempts: 1,
    status: 200,
    duration_ms: 12,
    error: null,
    next_try_at: null,
  },
);
export type WebhookDelivery = Shown<z.infer<typeof WebhookDelivery>>;
export const WebhookDeliveries = answer(
  "WebhookDeliveries",
  z.object({
    items: z.array(WebhookDelivery)
      .describe("the newest 100 of the node that is asked, since its start; the newest first"),
  }),
  { items: [exampleOf(WebhookDelivery)] },
);
