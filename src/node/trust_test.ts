import assert from "node:assert/strict";
import { type Config, parseConfig } from "../config/mod.ts";
import { formatName } from "../dns/mod.ts";
import { parseTrustAnchors } from "../dnssec/mod.ts";
import { exemptNames, validates } from "./trust.ts";

const none = { permissions: "none" } as const;

function configOf(recursion: string): Config {
  const text = `[recursion]\n${recursion}\n[[upstream]]\naddress = "192.0.2.1"\n` +
    `[[upstream]]\naddress = "192.0.2.2"\ndomains = ["corp.example", "lan"]\n`;
  const { config, problems } = parseConfig(text, { file: "svc.toml", directory: "/etc/svc" });
  assert.deepEqual(problems.filter(({ severity }) => severity !== "note"), []);
  return config!;
}

Deno.test(
  "validates() is on for recursion, and for upstreams where that is asked for",
  none,
  () => {
    const rows = [
      ["", false],
      ["enabled = true", true],
      ["validate_forwarded = true", true],
      ["enabled = true\ndnssec = false", false],
      ["validate_forwarded = true\ndnssec = false", false],
    ] as const;
    for (const [text, want] of rows) assert.equal(validates(configOf(text)), want, text);
  },
);

Deno.test(
  "exemptNames() are those configured, and those of upstreams without an anchor",
  none,
  () => {
    const ds = "IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D";
    const own = 'trust_anchor = "anchors"\n';
    const on = "validate_forwarded = true\n";
    const rows = [
      [on, ".", "corp.example, lan"],
      [`${on}negative_trust_anchors = ["broken.test"]`, ".", "broken.test, corp.example, lan"],
      // Anchors of one's own say that names of one's own can be proven.
      [on + own, "example", "lan"],
      [on + own, "a.corp.example", "lan"],
      [on + own, ".", ""],
      [on + own, "test", "corp.example, lan"],
      // What upstreams say is not validated then.
      [`enabled = true\n${own}`, "example", "corp.example, lan"],
    ] as const;
    for (const [text, zone, want] of rows) {
      const { anchors } = parseTrustAnchors(`${zone} ${ds}`);
      const names = exemptNames(configOf(text), anchors).map((name) => formatName(name));
      assert.equal(names.sort().join(", "), want, `${text} ${zone}`);
    }
  },
);
