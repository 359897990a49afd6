import * as z from "zod";

/** Read-only all the way down: answers are often the store's own objects. */
export type Shown<T> = T extends readonly (infer U)[] ? readonly Shown<U>[]
  : T extends object ? { readonly [K in keyof T]: Shown<T[K]> }
  : T;

/** What a schema is called in the OpenAPI document, and what one of its kind looks like. */
interface Named {
  readonly id: string;
  readonly example: unknown;
}

/** Schemas of requests and of answers; each is named where it is made. */
export const requestSchemas = z.registry<Named>();
export const answerSchemas = z.registry<Named>();

/** Gives the schema of a request body its name in the document. */
export function request<T extends z.ZodType>(id: string, schema: T, example: z.input<T>): T {
  requestSchemas.add(schema, { id, example });
  return schema;
}

/** Gives the schema of an answer its name in the document. */
export function answer<T extends z.ZodType>(id: string, schema: T, example: z.output<T>): T {
  answerSchemas.add(schema, { id, example });
  return schema;
}

/** What a named answer looks like, for the example of one that holds it. */
export function exampleOf<T extends z.ZodType>(schema: T): z.output<T> {
  return answerSchemas.get(schema)?.example as z.output<T>;
}

/** A moment of examples, and one a little later. */
export const EXAMPLE_TIME = "2026-01-02T03:04:05.678Z";
export const EXAMPLE_LATER = "2026-01-02T04:04:05.678Z";
/** 16 hexadecimal digits of examples. */
export const EXAMPLE_DIGITS = "586105ff9c383d7e";

export const timestamp = z.iso.datetime().describe("RFC 3339 in UTC with fractional seconds");
/** A number of things. */
export const count = z.int().min(0);

/** The most items that one answer of a log holds. */
export const PAGE_ITEMS_MAX = 1_000;
export const PAGE_ITEMS_DEFAULT = 100;
/** Longest text that resources are searched for. */
const SEARCH_LENGTH_MAX = 255;

/** A whole number in a query string. */
export function queryInteger(min: number, max: number) {
  return z.string().regex(/^-?\d{1,10}$/, "it is no whole number").transform(Number)
    .pipe(z.int().min(min).max(max));
}

/** What is asked of a collection; nothing: all of it. */
export const CollectionQuery = z.strictObject({
  q: z.string().min(1).max(SEARCH_LENGTH_MAX).optional()
    .describe("only resources with this text in a field, in either case"),
  limit: queryInteger(1, PAGE_ITEMS_MAX).optional()
    .describe("the most resources of the answer; left out: all"),
  next: z.string().regex(/^[0-9a-z]{1,11}$/, "it is no cursor").optional()
    .describe("the cursor of the previous answer"),
});
export type CollectionQuery = z.infer<typeof CollectionQuery>;

/** How many entries of a log are asked for. */
export const limit = queryInteger(1, PAGE_ITEMS_MAX).default(PAGE_ITEMS_DEFAULT)
  .describe("the most entries of the answer");
/** The span of time that is asked for. */
export const span = {
  since: z.iso.datetime({ offset: true }).optional().describe("only entries after then"),
  until: z.iso.datetime({ offset: true }).optional().describe("only entries before then"),
};

export const ErrorAnswer = answer(
  "Error",
  z.object({
    error: z.object({
      code: z.string().describe("stable; new values may appear"),
      message: z.string().describe("leads with the place, for people"),
      details: z.array(z.object({
        path: z.string().describe("the field, such as lists[2].list; empty: the whole"),
        message: z.string().describe("what is wrong with it, for people"),
      })).optional().describe("with 422: all that is wrong with what was sent"),
    }).describe("why nothing was done"),
  }),
  {
    error: {
      code: "invalid",
      message: "name: it is missing (and 1 more)",
      details: [
        { path: "name", message: "it is missing" },
        { path: "colour", message: "there is no such field" },
      ],
    },
  },
);
export type ErrorAnswer = z.infer<typeof ErrorAnswer>;
