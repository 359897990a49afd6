import * as z from "zod";
import { ClientId } from "../../model/mod.ts";
import { answer, EXAMPLE_TIME, request, timestamp } from "./common.ts";

/** What Apple's systems call a configuration profile. */
export const PROFILE_TYPE = "application/x-apple-aspen-config";

export const ProfileRequest = request(
  "ProfileRequest",
  z.strictObject({
    client_id: ClientId.optional()
      .describe("the client ID that the device's queries carry; left out: none"),
    protocol: z.enum(["doh", "dot"]).default("doh").describe("how the device asks"),
  }),
  { client_id: "tablet", protocol: "doh" },
);
export type ProfileRequest = z.infer<typeof ProfileRequest>;

export const Profile = answer(
  "Profile",
  z.object({
    url: z.string().describe("where the device loads it from, without credentials"),
    expires_at: timestamp.describe("until when it is there"),
    signed: z.boolean().describe("false: the device will call it unsigned"),
  }),
  {
    url: "https://dns.example/api/v1/profiles/000102030405060708090a0b0c0d0e0f",
    expires_at: EXAMPLE_TIME,
    signed: true,
  },
);
export type Profile = z.infer<typeof Profile>;
