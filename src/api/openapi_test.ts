import assert from "node:assert/strict";
import { Validator } from "@seriousme/openapi-schema-validator";
import { ENDPOINTS, openApiDocument } from "./endpoints.ts";
import { documentOf } from "./openapi.ts";

const none = { permissions: "none" } as const;
/** The validator reads the schemas of OpenAPI from its own package. */
const validating = { permissions: { read: [new URL("../../node_modules", import.meta.url)] } };

type Json = Record<string, unknown>;
const plain = (): Json => JSON.parse(JSON.stringify(openApiDocument()));

Deno.test("openApiDocument() is OpenAPI 3.1", validating, async () => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(plain());
  assert.equal(valid, true, JSON.stringify(errors));
  assert.equal(validator.version, "3.1");
  const broken = { ...plain(), paths: { "/x": { get: { responses: 3 } } } };
  assert.equal((await validator.validate(broken)).valid, false);
});

Deno.test("openApiDocument() describes every endpoint once", none, () => {
  const { paths } = openApiDocument();
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`)
  );
  assert.deepEqual(
    described.toSorted(),
    ENDPOINTS.map(({ method, path }) => `${method} ${path}`).toSorted(),
  );
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods)) as Json[];
  const ids = operations.map(({ operationId }) => operationId);
  assert.equal(new Set(ids).size, ids.length);
});

Deno.test("openApiDocument() refers only to what it has", none, () => {
  const document = plain();
  const { schemas } = document.components as { schemas: Json };
  const used = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === "$ref") used.add(String(inner).replace("#/components/schemas/", ""));
      else visit(inner);
    }
  };
  visit(document);
  assert.deepEqual([...used].filter((name) => !Object.hasOwn(schemas, name)), []);
  assert.deepEqual(Object.keys(schemas).filter((name) => !used.has(name)), []);
});

Deno.test("documentOf() writes a spec as it is sent and as it is answered", none, () => {
  const { schemas } = documentOf(ENDPOINTS).components as { schemas: Record<string, Json> };
  const { RuleSpec, Rule } = schemas;
  assert.deepEqual(RuleSpec.required, ["rule"]);
  assert.equal(RuleSpec.additionalProperties, false);
  const properties = RuleSpec.properties as Record<string, Json>;
  assert.deepEqual(properties.managed_by, { default: "api", type: "string", maxLength: 128 });
  const { spec, created_at } = Rule.properties as Record<string, Json>;
  assert.deepEqual(spec.required, ["rule", "enabled", "comment", "managed_by"]);
  assert.equal(created_at.format, "date-time");
  assert.equal(Rule.additionalProperties, undefined);
  const { addresses } = schemas.ClientSpec.properties as Record<string, Json>;
  assert.deepEqual(addresses.default, []);
  assert.deepEqual(addresses.items, { type: "string", maxLength: 64 });
  const { password } = schemas.UserCreate.properties as Record<string, Json>;
  assert.deepEqual(password, { type: "string", minLength: 8, maxLength: 256 });
});
