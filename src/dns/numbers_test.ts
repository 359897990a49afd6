import assert from "node:assert/strict";
import { readJsonVector } from "../../tests/fuzz/dns_seeds.ts";
import { className, edePurpose, parseQtype, Qtype, qtypeName, rcodeName } from "./mod.ts";

const none = { permissions: "none" } as const;

Deno.test("qtypeName() and parseQtype() agree for every number", none, () => {
  for (let type = 0; type <= 0xffff; type++) assert.equal(parseQtype(qtypeName(type)), type);
  const rows = [[1, "A"], [65, "HTTPS"], [255, "ANY"], [23, "NSAP-PTR"], [65280, "TYPE65280"]];
  for (const [type, name] of rows) assert.equal(qtypeName(Number(type)), name);
});

Deno.test("parseQtype() takes either case and refuses what is no type", none, () => {
  const rows: [string, number | null][] = [
    ["aaaa", Qtype.AAAA],
    ["Type1", 1],
    ["TYPE65535", 65535],
    ["TYPE65536", null],
    ["TYPE01", null],
    ["TYPE", null],
    ["", null],
    ["B", null],
    ["toString", null],
    ["__proto__", null],
  ];
  for (const [text, want] of rows) assert.equal(parseQtype(text), want, text);
});

Deno.test("rcodeName() and className() name what has a name", none, () => {
  const codes = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN"];
  codes.forEach((name, rcode) => assert.equal(rcodeName(rcode), name));
  assert.deepEqual([rcodeName(16), rcodeName(12)], ["BADVERS", "RCODE12"]);
  assert.deepEqual([className(1), className(3), className(17)], ["IN", "CH", "CLASS17"]);
});

type EdeCodes = { readonly codes: readonly { readonly code: number; readonly purpose: string }[] };
const ede = readJsonVector<EdeCodes>("ede-rfc8914.json");

Deno.test("edePurpose() has the words of RFC 8914", { ...none, ignore: ede === null }, () => {
  assert.equal(ede?.codes.length, 25);
  for (const { code, purpose } of ede?.codes ?? []) assert.equal(edePurpose(code), purpose);
  assert.equal(edePurpose(27), "Unsupported NSEC3 Iterations Value");
  assert.equal(edePurpose(4711), "EDE 4711");
});
