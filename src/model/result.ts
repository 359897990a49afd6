import type { AuditedAction } from "./audit_words.ts";
import type { Refused } from "./live_state.ts";
import { SPEC_BYTES_MAX } from "./resources.ts";
import { refuse } from "./references.ts";

/** What a change came to before it has an index: refused, or done with what the audit log says. */
export type Result =
  | Refused
  | AuditedAction & {
    readonly kind: "done";
    readonly value: unknown;
    readonly before: unknown;
    readonly after: unknown;
  };

export const TOO_LARGE: Refused = refuse(
  "invalid",
  `spec: is larger than ${SPEC_BYTES_MAX} bytes as JSON`,
);

const encoder = new TextEncoder();

/** Length of a value as JSON in UTF-8, as the store keeps it. */
export function jsonBytes(value: unknown): number {
  return encoder.encode(JSON.stringify(value)).length;
}

/**
 * A copy of a JSON value, so that the state shares nothing with whoever proposed it; `null` if it
 * has more bytes as JSON than it may.
 */
export function copyWithin<T>(value: T, bytesMax: number): T | null {
  const text = JSON.stringify(value);
  return encoder.encode(text).length > bytesMax ? null : JSON.parse(text);
}
