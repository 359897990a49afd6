import keys from "./release_keys.json" with { type: "json" };

/** Raw Ed25519 public keys in base64, of those whose releases this program takes. The build fills it. */
export const RELEASE_KEYS: readonly string[] = keys;
