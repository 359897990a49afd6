import * as z from "zod";
import { SvcError } from "../../errors.ts";
import {
  type Change,
  type Collection,
  COLLECTIONS,
  type Decoded,
  decodeSpec,
  type Envelope,
  ID_PREFIX,
  shownText,
  type SpecOf,
  SPECS,
} from "../../model/mod.ts";
import { type Answer, type Call, type Endpoint, endpoint } from "../endpoint.ts";
import { ProblemsError } from "../errors.ts";
import { valueOf } from "../../store/mod.ts";
import type { ApiDeps } from "../ports.ts";
import { pageOf } from "../collection_page.ts";
import { CollectionQuery } from "../schemas/common.ts";
import { RESOURCES } from "../schemas/resources.ts";

/**
 * The decoded value, or what is wrong with it.
 *
 * @throws {SvcError} `invalid`, with the path of the bad field.
 */
export function specOf<S>(decoded: Decoded<S>): S {
  if (decoded.ok) return decoded.spec;
  throw new ProblemsError("invalid", decoded.problems, "body");
}

/** An envelope as the API shows it: that of a list has what this node made of it. */
export function shownEnvelope<C extends Collection>(
  { lists }: ApiDeps,
  collection: C,
  envelope: Envelope<SpecOf<C>>,
): unknown {
  return collection === "lists" ? { ...envelope, status: lists.status(envelope.id) } : envelope;
}

function answerOf<C extends Collection>(
  deps: ApiDeps,
  collection: C,
  envelope: Envelope<SpecOf<C>>,
): Answer {
  const body = shownEnvelope(deps, collection, envelope);
  return { body: body as Answer["body"], revision: envelope.revision };
}

/** Makes a change and waits until it holds for the next query. */
export async function change(call: Call, what: Change): Promise<unknown> {
  const value = valueOf(await call.deps.replicator.propose(what, call.caller.actor));
  await call.deps.inForce();
  return value;
}

/** The five methods of a collection. */
function defineResource<C extends Collection>(collection: C): Endpoint[] {
  const { name, one, all } = RESOURCES[collection];
  const thing = name.toLowerCase();
  const path = `/api/v1/${collection}` as const;
  const body = SPECS[collection] as z.ZodType;
  const decodeBody = (json: unknown) => specOf(decodeSpec(collection, json));
  const common = { tag: collection };
  // One collection is as good as another here, so the types of its spec stay behind.
  const envelopeOf = (value: unknown) => value as Envelope<SpecOf<C>>;
  return [
    endpoint(`POST ${path}`, {
      operationId: `create${name}`,
      ...common,
      summary: `Add a ${thing}`,
      need: "admin",
      body,
      decode: decodeBody,
      status: 201,
      answer: one,
      hasEtag: true,
      errors: ["conflict", "unavailable"],
      handle: async (call) => {
        const { newId } = call.deps;
        const id = newId(ID_PREFIX[collection]);
        const made = { type: "create", collection, id, spec: call.body } as Change;
        const envelope = envelopeOf(await change(call, made));
        return {
          ...answerOf(call.deps, collection, envelope),
          location: `${path}/${envelope.id}`,
        };
      },
    }),
    endpoint(`GET ${path}`, {
      operationId: `list${name}s`,
      ...common,
      summary: `Every ${thing}, oldest first, or those with a text in them, by the page`,
      need: "viewer",
      query: CollectionQuery,
      answer: all,
      handle: ({ deps, query }) => {
        const all = deps.replicator.state.collections[collection];
        if (Object.keys(query).length > 0) {
          const page = pageOf<Envelope<SpecOf<C>>>(all, query);
          const items = page.items.map((one) => shownEnvelope(deps, collection, one));
          return { body: { items, next: page.next } as Answer["body"] };
        }
        const items = Array.from(
          all.values(),
          (e) => shownEnvelope(deps, collection, envelopeOf(e)),
        );
        const body = { items } as Answer["body"];
        // A collection is immutable, but a list has its status beside what is stored.
        return collection === "lists" ? { body } : { body, madeOf: all };
      },
    }),
    endpoint(`GET ${path}/{id}`, {
      operationId: `get${name}`,
      ...common,
      summary: `One ${thing}`,
      need: "viewer",
      answer: one,
      hasEtag: true,
      errors: ["not_found"],
      handle: ({ deps, param }) => {
        const envelope = deps.replicator.state.collections[collection].get(param);
        if (envelope === undefined) throw noSuch(thing, param);
        return answerOf(deps, collection, envelopeOf(envelope));
      },
    }),
    endpoint(`PUT ${path}/{id}`, {
      operationId: `replace${name}`,
      ...common,
      summary: `Replace the whole spec of a ${thing}`,
      need: "admin",
      body,
      decode: decodeBody,
      takesIfMatch: true,
      answer: one,
      hasEtag: true,
      errors: ["conflict", "not_found", "unavailable"],
      handle: async (call) => {
        const { param: id, body: spec, ifMatch } = call;
        const replaced = { type: "replace", collection, id, spec, ifMatch } as Change;
        return answerOf(call.deps, collection, envelopeOf(await change(call, replaced)));
      },
    }),
    endpoint(`DELETE ${path}/{id}`, {
      operationId: `delete${name}`,
      ...common,
      summary: `Remove a ${thing}`,
      need: "admin",
      takesIfMatch: true,
      errors: ["conflict", "not_found", "unavailable"],
      handle: async (call) => {
        await change(call, { type: "delete", collection, id: call.param, ifMatch: call.ifMatch });
        return {};
      },
    }),
  ];
}

function noSuch(thing: string, id: string): SvcError {
  return new SvcError("not_found", `${shownText(id)}: there is no such ${thing}`);
}

export const resourceEndpoints: readonly Endpoint[] = COLLECTIONS.flatMap(defineResource);
