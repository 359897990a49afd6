import assert from "node:assert/strict";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { ENDPOINTS, openApiDocument } from "./endpoints.ts";
import { DEFAULT_SETTINGS } from "../model/mod.ts";
import { requestSchemas } from "./schemas/common.ts";

const none = { permissions: "none" } as const;
/** The validator reads the schemas of OpenAPI from its own package. */
const validating = { permissions: { read: [new URL("../../node_modules", import.meta.url)] } };

/** A schema is compiled to code of its own, which needs nothing. */
const compiling = none;

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

type Schema = Json & {
  readonly properties?: Record<string, Schema>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
};

function schemasOf(): Record<string, Schema> {
  return (plain().components as { schemas: Record<string, Schema> }).schemas;
}

function operations(): [string, Json][] {
  return Object.entries(plain().paths as Record<string, Record<string, Json>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, one]): [string, Json] => [`${method} ${path}`, one]),
  );
}

Deno.test("documentOf() writes a spec as it is sent and as it is answered", none, () => {
  const schemas = schemasOf();
  const { RuleSpec, RuleSpecAnswer, Rule } = schemas;
  assert.deepEqual(RuleSpec.required, ["rule"]);
  assert.equal(RuleSpec.additionalProperties, false);
  assert.equal(RuleSpec.properties?.managed_by.default, "api");
  assert.equal(RuleSpec.properties?.managed_by.maxLength, 128);
  assert.deepEqual(RuleSpecAnswer.required, [
    ...["rule", "enabled", "comment", "managed_by"],
    ...["expires_at", "groups", "clients"],
  ]);
  assert.equal(Rule.properties?.spec.$ref, "#/components/schemas/RuleSpecAnswer");
  assert.equal(Rule.properties?.created_at.format, "date-time");
  assert.equal(Rule.additionalProperties, undefined);
});

Deno.test("documentOf() states what is checked", none, () => {
  const { ListSpec, ClientSpec, Settings, UserCreate, GroupSpec } = schemasOf();
  assert.deepEqual(ListSpec.allOf, [{ oneOf: [{ required: ["url"] }, { required: ["path"] }] }]);
  assert.equal(ListSpec.properties?.url.format, "uri");
  const { addresses, ids, group } = ClientSpec.properties ?? {};
  assert.deepEqual(addresses.default, []);
  assert.equal(addresses.uniqueItems, true);
  assert.equal(addresses.maxItems, 256);
  assert.match("2001:db8::/32", new RegExp(String(addresses.items?.pattern)));
  assert.equal(ids.items?.pattern, "^[a-z0-9-]{1,63}$");
  assert.match(String(group.pattern), /gr_/);
  assert.equal(GroupSpec.properties?.name.maxLength, 128);
  assert.ok(new RegExp(String(GroupSpec.properties?.name.pattern), "u").test("Bücher"));
  assert.ok(!new RegExp(String(GroupSpec.properties?.name.pattern), "u").test("a\u202eb"));
  const { password, name } = UserCreate.properties ?? {};
  assert.deepEqual([password.minLength, password.maxLength], [8, 256]);
  assert.ok(new RegExp(String(name.pattern), "u").test("Ann B."));
  const { access, blocking_ipv4, blocking_ipv6, ...others } = Settings.properties ?? {};
  assert.deepEqual(access.default, DEFAULT_SETTINGS.access);
  assert.deepEqual(access.properties?.allowed.default, DEFAULT_SETTINGS.access.allowed);
  assert.deepEqual(access.properties?.disallowed.default, []);
  const defaults = Object.entries({ blocking_ipv4, blocking_ipv6, ...others })
    .map(([field, schema]) => [field, schema.default]);
  const { access: _, ...want } = DEFAULT_SETTINGS;
  assert.deepEqual(Object.fromEntries(defaults), want);
  const formats = [blocking_ipv4, blocking_ipv6].map((one) => one.anyOf?.[0].format);
  assert.deepEqual(formats, ["ipv4", "ipv6"]);
});

Deno.test("openApiDocument() calls operations by a verb, and each by its own", none, () => {
  const verbs =
    /^(begin|change|check|confirm|create|delete|demote|disable|explain|export|flush|get|list|migrate|pause|promote|redeem|refresh|remove|replace|reset|restore|resume|search|sign|start|watch)[A-Z]/;
  const seen = new Set<unknown>();
  for (const [line, { operationId }] of operations()) {
    assert.match(String(operationId), verbs, line);
    assert.ok(!seen.has(operationId), `${operationId} once more`);
    seen.add(operationId);
  }
  for (const id of ["disableUserOtp", "listRules", "createRule", "replaceUser", "deleteGroup"]) {
    assert.ok(seen.has(id), id);
  }
});

Deno.test("openApiDocument() gives no two schemas one name", none, () => {
  const schemas = schemasOf();
  const taken = new Set(Object.keys(schemas).map((name) => name.toLowerCase()));
  assert.equal(taken.size, Object.keys(schemas).length);
  /** What generators call a schema without a name, by where it stands. */
  const visit = (schema: Schema, name: string): void => {
    if (schema.items !== undefined) return visit(schema.items, `${name}Item`);
    for (const [i, one] of (schema.anyOf ?? []).entries()) visit(one, `${name}Type${i}`);
    if (schema.properties === undefined) return;
    const key = name.toLowerCase().replaceAll("_", "");
    assert.ok(!taken.has(key), `${name} is taken`);
    taken.add(key);
    for (const [field, one] of Object.entries(schema.properties)) visit(one, name + field);
  };
  for (const [name, { title, properties = {} }] of Object.entries(schemas)) {
    assert.equal(title, name);
    for (const [field, one] of Object.entries(properties)) visit(one, name + field);
  }
  for (const [name, { properties }] of Object.entries(schemas)) {
    const spec = properties?.spec;
    if (spec !== undefined) assert.match(String(spec.$ref), /schemas\/\w+Spec(Answer)?$/, name);
  }
});

Deno.test("openApiDocument() describes each property and parameter", none, () => {
  const bare: string[] = [];
  const visit = (schema: Schema, where: string): void => {
    for (const [field, one] of Object.entries(schema.properties ?? {})) {
      const place = `${where}.${field}`;
      if (String(one.description ?? "").length < 3) bare.push(place);
      visit(one, place);
    }
    if (schema.items !== undefined) visit(schema.items, `${where}[]`);
    for (const one of schema.anyOf ?? []) visit(one, where);
  };
  for (const [name, schema] of Object.entries(schemasOf())) visit(schema, name);
  for (const [line, { parameters = [] }] of operations()) {
    for (const { name, description } of parameters as Json[]) {
      if (String(description ?? "").length < 3) bare.push(`${line} ${name}`);
    }
  }
  assert.deepEqual(bare, []);
});

Deno.test(
  "openApiDocument() has an example of each request and answer, which are such",
  compiling,
  () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
    const document = plain();
    ajv.addSchema({ $id: "https://svc.invalid/", components: document.components });
    const check = (where: string, content: Record<string, Json> = {}) => {
      for (const [type, media] of Object.entries(content)) {
        assert.ok(media.example !== undefined, `${where}: ${type} has no example`);
        const text = JSON.stringify(media.schema).replaceAll('"#/', '"https://svc.invalid/#/');
        const isValid = ajv.validate(JSON.parse(text), media.example);
        assert.ok(isValid, `${where}: ${ajv.errorsText()}: ${JSON.stringify(media.example)}`);
      }
    };
    for (const [line, { requestBody, responses }] of operations()) {
      check(line, (requestBody as Json | undefined)?.content as Record<string, Json>);
      for (const [status, response] of Object.entries(responses as Record<string, Json>)) {
        const { content } = response as { content?: Record<string, Json> };
        assert.equal(content === undefined, status === "204", `${line} ${status}`);
        check(`${line} ${status}`, content);
      }
    }
    const rule = { $ref: "https://svc.invalid/#/components/schemas/RuleSpec" };
    assert.equal(ajv.validate(rule, { rule: 1 }), false, "and what is none is found out");
  },
);

Deno.test("an example of a request is taken as it is", none, () => {
  for (const { body, operationId } of ENDPOINTS) {
    if (body === null) continue;
    const named = requestSchemas.get(body.schema);
    assert.ok(named !== undefined, operationId);
    if (body.decode !== null) body.decode(named.example);
    else body.schema.parse(named.example);
  }
});

Deno.test("openApiDocument() declares what each request may be refused with", none, () => {
  for (const [line, { responses, requestBody }] of operations()) {
    const all = responses as Record<string, Json>;
    const must = [
      "403",
      "408",
      "431",
      "500",
      ...requestBody === undefined ? [] : ["413", "415", "422"],
    ];
    for (const status of must) assert.ok(Object.hasOwn(all, status), `${line} ${status}`);
    for (const status of ["429", "503"]) {
      if (!Object.hasOwn(all, status)) continue;
      const { headers } = all[status] as { headers?: Json };
      assert.ok(headers?.["Retry-After"] !== undefined, `${line} ${status}`);
    }
  }
  const [, login] = operations().find(([line]) => line.endsWith("/auth/login"))!;
  assert.ok(Object.hasOwn(login.responses as Json, "429"));
});

Deno.test("openApiDocument() leads from what was made to what can be done with it", none, () => {
  const all = new Map(operations().map(([, one]) => [one.operationId, one]));
  for (const [line, { responses }] of operations()) {
    const made = (responses as Record<string, Json>)["201"];
    if (made === undefined) continue;
    const links = (made.links ?? {}) as Record<string, { operationId: string; parameters: Json }>;
    const want = line.includes("leak-tests") ? ["get"] : ["get", "replace", "delete"];
    assert.deepEqual(Object.keys(links), want, line);
    for (const { operationId, parameters } of Object.values(links)) {
      assert.ok(all.has(operationId), operationId);
      assert.deepEqual(parameters, { id: "$response.body#/id" });
    }
  }
});
