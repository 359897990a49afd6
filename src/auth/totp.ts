import { Secret, TOTP } from "otpauth";
import { equalConstantTime } from "../bytes/mod.ts";

/** Seconds that a code is for (RFC 6238 §4.1). */
const STEP_SECONDS = 30;
const DIGITS = 6;
/** As long as SHA-1's output (RFC 4226 §4, R6). */
const SECRET_BYTES = 20;
/** Steps before and after now whose codes are taken: for clocks that are off (RFC 6238 §5.2). */
const STEPS_AROUND = 1;
const ISSUER = "svc";

const encoder = new TextEncoder();

/** A new secret, in base32. */
export function newOtpSecret(): string {
  return new Secret({ size: SECRET_BYTES }).base32;
}

function totpOf(secret: string, label: string): TOTP {
  return new TOTP({
    issuer: ISSUER,
    label,
    algorithm: "SHA1",
    digits: DIGITS,
    period: STEP_SECONDS,
    secret: Secret.fromBase32(secret),
  });
}

/** What an authenticator reads from a QR code. */
export function otpUri(secret: string, userName: string): string {
  return totpOf(secret, userName).toString();
}

/** The code of a time. */
export function otpCode(secret: string, nowMs: number): string {
  return totpOf(secret, "").generate({ timestamp: nowMs });
}

/**
 * Returns the time step that `code` is for, or `null` where it is no code of now or of one step
 * around it, or its step is not after `lastStep`: a code is good once (RFC 6238 §5.2).
 */
export function otpStep(
  secret: string,
  code: string,
  nowMs: number,
  lastStep: number,
): number | null {
  const digits = code.replace(/\s/g, "");
  if (!/^\d{6}$/.test(digits)) return null;
  const totp = totpOf(secret, "");
  const now = Math.floor(nowMs / 1_000 / STEP_SECONDS);
  for (let step = now - STEPS_AROUND; step <= now + STEPS_AROUND; step++) {
    if (step <= lastStep || step < 0) continue;
    const expected = totp.generate({ timestamp: step * STEP_SECONDS * 1_000 });
    if (equalConstantTime(encoder.encode(expected), encoder.encode(digits))) return step;
  }
  return null;
}
