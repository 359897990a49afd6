/** A session of a signed-in user; kept by the node that they signed in at alone. */
export interface Session {
  /** SHA-256 of the cookie's value, in hexadecimal: the value itself is never stored. */
  readonly sha256: string;
  readonly userId: string;
  /** The user's `session_epoch` when it was made; it ends when that has grown. */
  readonly epoch: number;
  readonly expiresAtMs: number;
  /** Where it was made from; one of an earlier version does not say. */
  readonly address?: string;
}
