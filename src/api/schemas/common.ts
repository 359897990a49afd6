import { z } from "zod";

/** Read-only all the way down: answers are often the store's own objects. */
export type Shown<T> = T extends readonly (infer U)[] ? readonly Shown<U>[]
  : T extends object ? { readonly [K in keyof T]: Shown<T[K]> }
  : T;

/** What requests and answers are called in the OpenAPI document; each is named where it is made. */
export const requestSchemas = z.registry<{ id: string }>();
export const answerSchemas = z.registry<{ id: string }>();

/** Gives the schema of a request body its name in the document. */
export function request<T extends z.ZodType>(id: string, schema: T): T {
  requestSchemas.add(schema, { id });
  return schema;
}

/** Gives the schema of an answer its name in the document. */
export function answer<T extends z.ZodType>(id: string, schema: T): T {
  answerSchemas.add(schema, { id });
  return schema;
}

export const timestamp = z.iso.datetime().describe("RFC 3339 in UTC with fractional seconds");
/** A number of things. */
export const count = z.int().min(0);

/** The most items that one answer of a log holds. */
export const PAGE_ITEMS_MAX = 1_000;
export const PAGE_ITEMS_DEFAULT = 100;

/** A whole number in a query string. */
export function queryInteger(min: number, max: number) {
  return z.string().regex(/^-?\d{1,10}$/, "is no whole number").transform(Number)
    .pipe(z.int().min(min).max(max));
}

/** How many entries of a log are asked for. */
export const limit = queryInteger(1, PAGE_ITEMS_MAX).default(PAGE_ITEMS_DEFAULT);

export const ErrorAnswer = answer(
  "Error",
  z.object({
    error: z.object({
      code: z.string().describe("stable; new values may appear"),
      message: z.string().describe("leads with the place, for people"),
    }),
  }),
);
export type ErrorAnswer = z.infer<typeof ErrorAnswer>;
