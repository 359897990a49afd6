import assert from "node:assert/strict";
import { type Config, defaultConfig, parseConfig } from "../config/mod.ts";
import { notBuilt } from "./not_built.ts";

const none = { permissions: "none" } as const;
