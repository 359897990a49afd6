import { SvcError } from "../../errors.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { streamOfBytes } from "../json_bodies.ts";
import { Profile, PROFILE_TYPE, ProfileRequest } from "../schemas/profiles.ts";
import { note } from "./node.ts";

const FILENAME = "dns.mobileconfig";

export const profileEndpoints: readonly Endpoint[] = [
  endpoint("POST /api/v1/profiles", {
    operationId: "createProfile",
    hasSecrets: true,
    tag: "node",
    summary: "Make a configuration profile for Apple's devices, to load for an hour",
    need: "admin",
    body: ProfileRequest,
    answer: Profile,
    errors: ["conflict", "unavailable"],
    handle: async (call) => {
      const { deps, body } = call;
      const made = deps.profiles.make(body);
      await note(call, "create", { type: "profile", id: body.client_id ?? null }, body);
      return { body: made };
    },
  }),
  endpoint("GET /api/v1/profiles/{id}", {
    operationId: "getProfile",
    tag: "node",
    summary: "A configuration profile, for who has its address",
    need: "nothing",
    streams: [PROFILE_TYPE],
    errors: ["not_found"],
    handle: ({ deps, param }) => {
      const bytes = deps.profiles.read(param);
      if (bytes === null) throw new SvcError("not_found", "profile: there is none, or no longer");
      return { stream: { type: PROFILE_TYPE, body: streamOfBytes(bytes), filename: FILENAME } };
    },
  }),
];
