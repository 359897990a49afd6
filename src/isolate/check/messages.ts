import type { SignatureCheck } from "../../dnssec/verify.ts";
import type { ToKept } from "../kept_isolate.ts";

/** A check with the number that its result comes back with. */
export interface NumberedCheck {
  readonly id: number;
  readonly check: SignatureCheck;
}

/** Whether the signature of a check fits. */
export interface CheckResult {
  readonly id: number;
  readonly fits: boolean;
}

export type ToCheck =
  /** A way to a dns isolate: checks come in by it, and their results go back. */
  | { readonly type: "connect"; readonly port: MessagePort }
  | { readonly type: "start"; readonly handsLogOn: boolean }
  | ToKept;

export type FromCheck = { readonly type: "ready" } | { readonly type: "pong" };
