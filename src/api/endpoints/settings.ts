import type { z } from "zod";
import { decodeSettings, type Envelope, type Settings, SettingsSpec } from "../../model/mod.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { SettingsAnswer } from "../schemas/resources.ts";
import { change, specOf } from "./resources.ts";

export const settingsEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/settings", {
    operationId: "getSettings",
    tag: "settings",
    summary: "The settings",
    need: "viewer",
    answer: SettingsAnswer,
    hasEtag: true,
    handle: ({ deps }) => {
      const { spec, revision } = deps.replicator.state.settings;
      return { body: spec, revision };
    },
  }),
  endpoint("PUT /api/v1/settings", {
    operationId: "replaceSettings",
    tag: "settings",
    summary: "Replace the settings; what is left out gets its default",
    need: "admin",
    body: SettingsSpec,
    decode: (json) => specOf(decodeSettings(json)) as z.output<typeof SettingsSpec>,
    takesIfMatch: true,
    answer: SettingsAnswer,
    hasEtag: true,
    errors: ["unavailable"],
    handle: async (call) => {
      const { body: spec, ifMatch } = call;
      const value = await change(call, { type: "settings", spec, ifMatch });
      const { spec: stored, revision } = value as Envelope<Settings>;
      return { body: stored, revision };
    },
  }),
];
