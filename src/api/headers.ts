const COMMON_POLICY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Nothing may be loaded, run or framed: what data needs. */
export const DATA_POLICY = `default-src 'none'; ${COMMON_POLICY}`;

/** The policy of a page that is one file: its own script and style, and requests to its origin. */
export function pagePolicy(scriptSha256: string, styleSha256: string): string {
  return `default-src 'none'; script-src 'sha256-${scriptSha256}'; ` +
    `style-src 'sha256-${styleSha256}'; connect-src 'self'; ${COMMON_POLICY}`;
}

/** What every response carries, whatever it answers; a policy of its own goes before this one. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": DATA_POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
};
