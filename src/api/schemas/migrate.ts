import * as z from "zod";
import { PRODUCTS } from "../../migrate/mod.ts";
import { answer, count, request } from "./common.ts";

const SECRET_LENGTH_MAX = 1_024;
const secret = z.string().max(SECRET_LENGTH_MAX).nullable().default(null);

/** Where another product is, and who may read it. Nothing of it is kept. */
export const MigrateBody = request(
  "MigrateBody",
  z.strictObject({
    product: z.enum(PRODUCTS).describe("adguard: AdGuard Home 0.107; pihole: Pi-hole 6"),
    url: z.string().min(1).max(2_048).meta({
      format: "uri",
      description: "where its web interface is, http or https; this node asks there",
    }),
    user: secret.describe("of AdGuard Home; null: it has none"),
    password: secret.describe("of the user, or of Pi-hole; null: it asks for none"),
  }),
  {
    product: "adguard",
    url: "http://192.168.1.2:3000",
    user: "ann",
    password: "what ann types there",
  },
);
export type MigrateBody = z.output<typeof MigrateBody>;

export const MigrateQuery = z.strictObject({
  dry_run: z.enum(["true", "false"]).default("false").transform((text) => text === "true")
    .describe("true: tells what would become of each thing, and changes nothing"),
});

/** What a migration came to, or would. */
export const Migrated = answer(
  "Migrated",
  z.object({
    done: z.boolean().describe("false: nothing was changed"),
    source: z.string().describe("the product and its version"),
    counts: z.object({
      added: count.describe("taken as it is"),
      there_already: count.describe("there is one here, which stays as it is"),
      adapted: count.describe("taken with a change, or part of fragment"),
      not_possible: count.describe("left behind"),
    }).describe("of items"),
    items: z.array(z.object({
      type: z.string().describe("such as list, rule, client or file; new values may appear"),
      name: z.string().describe("what it is"),
      outcome: z.string().describe(
        "added, there_already, adapted or not_possible; new values may appear",
      ),
      detail: z.string().nullable().describe("how it was adapted, or why it is not possible"),
    })).describe("everything that was found there"),
    fragment: z.string().describe("the part of svc.toml for what belongs into the file"),
  }),
  {
    done: true,
    source: "AdGuard Home v0.107.79",
    counts: { added: 1, there_already: 0, adapted: 0, not_possible: 1 },
    items: [
      { type: "rule", name: "||ads.example^", outcome: "added", detail: null },
      {
        type: "client",
        name: "Laptop: tags user_regular",
        outcome: "not_possible",
        detail: "use groups",
      },
    ],
    fragment: '[[upstream]]\naddress = "tls://9.9.9.9#dns.quad9.net"\n',
  },
);
export type Migrated = z.infer<typeof Migrated>;
