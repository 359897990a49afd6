/**
 * What another filtering DNS product has, taken over: AdGuard Home's web API and that of Pi-hole 6 are
 * read, and nothing is changed there; what they say becomes wishes in words of ours, and these and a
 * state become a plan: each thing with what becomes of it, and one change that adds what is missing.
 * Requests are sent by a port; all that comes back is bounded and held against its shape. The same
 * source and state make the same plan. Scope: none. @module
 */
export {
  type Product,
  PRODUCT_NAMES,
  PRODUCTS,
  sourceBase,
  type SourceRequest,
} from "./ask_source.ts";
export { READ_MS_MAX } from "./limits.ts";
export { type Plan, planMigration } from "./plan.ts";
export { readSource, type SourceData, titleOf, wishesOf } from "./sources.ts";
export type { Item, ItemType, Outcome, Place } from "./wishes.ts";
