import { createHash } from "node:crypto";
import { pagePolicy } from "./headers.ts";

/*
 * The page builds elements from the document and never reads markup out of it. It keeps the token
 * in its own memory, so a reload forgets it.
 */
const SCRIPT = `
"use strict";
const make = (tag, text, ...children) => {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};
const main = document.querySelector("main");
const form = document.querySelector("form");
let spec;

function resolve(schema) {
  const name = schema && schema.$ref && schema.$ref.split("/").pop();
  return name ? spec.components.schemas[name] : schema;
}

function schemaLink(schema) {
  if (!schema) return make("span", "none");
  if (!schema.$ref) return make("code", JSON.stringify(schema));
  const name = schema.$ref.split("/").pop();
  const link = make("a", name);
  link.href = "#schema-" + name;
  return link;
}

function sample(schema, depth = 0) {
  const s = resolve(schema) || {};
  if ("default" in s) return s.default;
  if (s.enum) return s.enum[0];
  if (s.anyOf) return sample(s.anyOf[0], depth + 1);
  if (s.type === "object" && depth < 6) {
    const required = new Set(s.required);
    return Object.fromEntries(Object.entries(s.properties || {})
      .filter(([name]) => required.has(name)).map(([name, p]) => [name, sample(p, depth + 1)]));
  }
  return { array: [], boolean: false, integer: s.minimum || 0, number: 0, object: {} }[s.type] ?? "";
}

function headers() {
  const token = form.elements.token.value.trim();
  return token ? { Authorization: "Bearer " + token } : {};
}

function tryOut(method, path, operation, body) {
  const box = make("form");
  const fields = new Map();
  for (const p of operation.parameters || []) {
    const input = make("input");
    input.required = p.required && p.in === "path";
    input.setAttribute("aria-label", p.name);
    input.placeholder = p.name + (p.required ? "" : " (optional)");
    fields.set(p, input);
    box.append(input);
  }
  const area = body && make("textarea", JSON.stringify(sample(body), null, 2));
  if (area) area.setAttribute("aria-label", "request body");
  const output = make("pre");
  output.setAttribute("aria-live", "polite");
  box.append(...(area ? [area] : []), make("button", "Send"), output);
  box.addEventListener("submit", async (event) => {
    event.preventDefault();
    let target = path;
    const query = new URLSearchParams();
    const sent = headers();
    for (const [p, { value }] of fields) {
      if (p.in === "path") target = target.replace("{" + p.name + "}", encodeURIComponent(value));
      else if (value && p.in === "query") query.set(p.name, value);
      else if (value) sent[p.name] = value;
    }
    if (area) sent["Content-Type"] = "application/json";
    const search = query.size ? "?" + query : "";
    try {
      const init = { method: method.toUpperCase(), headers: sent };
      const response = await fetch(target + search, area ? { ...init, body: area.value } : init);
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* It is no JSON. */ }
      output.textContent = response.status + " " + response.statusText + "\\n" + shown;
    } catch (error) {
      output.textContent = String(error);
    }
  });
  return box;
}

function operation(method, path, op) {
  const details = make("details");
  details.append(make("summary", "", make("b", method.toUpperCase()), " ", make("code", path),
    " ", op.summary));
  const body = op.requestBody && op.requestBody.content["application/json"].schema;
  if (body) details.append(make("p", "Request: ", schemaLink(body)));
  const table = make("table");
  for (const [status, response] of Object.entries(op.responses)) {
    const content = Object.values(response.content || {})[0];
    table.append(make("tr", "", make("td", status), make("td", response.description),
      make("td", "", schemaLink(content && content.schema))));
  }
  details.append(table, tryOut(method, path, op, body));
  return details;
}

async function show() {
  main.replaceChildren(make("p", "Loading…"));
  const response = await fetch("/api/v1/openapi.json", { headers: headers() });
  if (!response.ok) {
    const why = response.status === 401 ? "sign in to svc, or give the token" : response.status;
    main.replaceChildren(make("p", "The document can't be read: " + why));
    return;
  }
  spec = await response.json();
  const parts = [make("p", spec.info.description)];
  for (const tag of spec.tags) {
    parts.push(make("h2", tag.name), make("p", tag.description));
    for (const [path, methods] of Object.entries(spec.paths)) {
      for (const [method, op] of Object.entries(methods)) {
        if (op.tags.includes(tag.name)) parts.push(operation(method, path, op));
      }
    }
  }
  parts.push(make("h2", "Schemas"));
  for (const [name, schema] of Object.entries(spec.components.schemas)) {
    const heading = make("h3", name);
    heading.id = "schema-" + name;
    parts.push(heading, make("pre", JSON.stringify(schema, null, 2)));
  }
  main.replaceChildren(...parts);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
show();
`;

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
details { border: 1px solid #8886; border-radius: 6px; margin: .3rem 0; padding: .3rem .6rem; }
summary { cursor: pointer; }
b { display: inline-block; min-width: 4.2rem; }
table { border-collapse: collapse; }
td { border-top: 1px solid #8884; padding: .15rem .6rem .15rem 0; vertical-align: top; }
pre { overflow: auto; background: #8881; padding: .5rem; border-radius: 6px; }
pre:empty { display: none; }
main > p { white-space: pre-line; }
input, textarea { font: inherit; margin: .2rem .4rem .2rem 0; }
textarea { display: block; width: 100%; min-height: 8rem; font-family: monospace; }
`;

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("base64");
}

/** The browser of the API: one page that asks for nothing outside of its own origin. */
export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>svc API</title>
<style>${STYLE}</style>
</head>
<body>
<h1>svc API</h1>
<form><label>Token <input name="token" type="password" autocomplete="off"></label>
<button>Use it</button></form>
<main></main>
<script>${SCRIPT}</script>
</body>
</html>
`;

export const DOCS_POLICY: string = pagePolicy(sha256(SCRIPT), sha256(STYLE));
