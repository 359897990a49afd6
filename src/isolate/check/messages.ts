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

/** What came of the checks of one message. */
export type CheckResults = readonly CheckResult[];

/** Number, algorithm, and lengths of key, data and signature. */
const HEAD_BYTES = 16;

/** Checks as one run of bytes: many small arrays take far longer from isolate to isolate. */
export function packChecks(checks: readonly NumberedCheck[]): Uint8Array<ArrayBuffer> {
  const lengthOf = ({ check: { publicKey, data, signature } }: NumberedCheck) =>
    HEAD_BYTES + publicKey.length + data.length + signature.length;
  const packed = new Uint8Array(checks.reduce((sum, one) => sum + lengthOf(one), 0));
  const view = new DataView(packed.buffer);
  let at = 0;
  for (const { id, check: { algorithm, publicKey, data, signature } } of checks) {
    view.setUint32(at, id);
    view.setUint16(at + 4, algorithm);
    view.setUint16(at + 6, signature.length);
    view.setUint32(at + 8, publicKey.length);
    view.setUint32(at + 12, data.length);
    at += HEAD_BYTES;
    for (const part of [publicKey, data, signature]) {
      packed.set(part, at);
      at += part.length;
    }
  }
  return packed;
}

/** The checks of `packChecks`. */
export function* unpackChecks(packed: Uint8Array): Generator<NumberedCheck> {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  for (let at = 0; at < packed.length;) {
    const [id, algorithm] = [view.getUint32(at), view.getUint16(at + 4)];
    const keyAt = at + HEAD_BYTES;
    const dataAt = keyAt + view.getUint32(at + 8);
    const signatureAt = dataAt + view.getUint32(at + 12);
    const end = signatureAt + view.getUint16(at + 6);
    const [publicKey, data, signature] = [
      packed.slice(keyAt, dataAt),
      packed.slice(dataAt, signatureAt),
      packed.slice(signatureAt, end),
    ];
    yield { id, check: { algorithm, publicKey, data, signature } };
    at = end;
  }
}

export type ToCheck =
  /** A way to a dns isolate: checks come in by it, and their results go back. */
  | { readonly type: "connect"; readonly port: MessagePort }
  | { readonly type: "start"; readonly handsLogOn: boolean }
  | ToKept;

export type FromCheck = { readonly type: "ready" } | { readonly type: "pong" };
