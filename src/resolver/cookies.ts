/**
 * DNS cookies of this server (RFC 7873, in the form of RFC 9018): who has one shows with it that it
 * gets what is sent to its address. Nobody is refused for having none, or an old one.
 */
import { setU16, setU32, SIP_HASH_BYTES, SIP_KEY_BYTES, sipHash } from "../bytes/mod.ts";
import { EdnsOption, OPTION_HEADER_BYTES } from "../dns/mod.ts";

/** Bytes of the cookie that a client makes up. */
export const CLIENT_COOKIE_BYTES = 8;
/** Version, three bytes that are zero, the time. */
const VERSION = 1;
const STAMP_BYTES = 8;
/** Bytes of the option with both cookies. */
export const COOKIE_OPTION_BYTES = OPTION_HEADER_BYTES + CLIENT_COOKIE_BYTES + STAMP_BYTES +
  SIP_HASH_BYTES;
export const COOKIE_SECRET_BYTES = SIP_KEY_BYTES;
const ADDRESS_BYTES_MAX = 16;
/** A secret serves so long: what was learned of one is soon of no use. */
const SECRET_SECONDS = 86_400;

/** Where the client is, and what it made up. */
export interface CookieClient {
  readonly address: {
    readonly bytes: Uint8Array;
    readonly offset: number;
    readonly lengthBytes: number;
  };
  /** The halves of its cookie. */
  readonly cookieHigh: number;
  readonly cookieLow: number;
}

/** What is hashed: the client's cookie, version and time, the client's address. */
const input = new Uint8Array(CLIENT_COOKIE_BYTES + STAMP_BYTES + ADDRESS_BYTES_MAX);

/** Writes client and server cookie to `at` of `target` (RFC 9018 §4); leaves no garbage. */
export function writeCookie(
  secret: Uint8Array,
  { address, cookieHigh, cookieLow }: CookieClient,
  nowSeconds: number,
  target: Uint8Array,
  at: number,
): void {
  setU32(input, 0, cookieHigh);
  setU32(input, 4, cookieLow);
  setU32(input, CLIENT_COOKIE_BYTES, VERSION << 24);
  setU32(input, CLIENT_COOKIE_BYTES + 4, nowSeconds);
  const stamped = CLIENT_COOKIE_BYTES + STAMP_BYTES;
  const { bytes, offset, lengthBytes } = address;
  for (let i = 0; i < lengthBytes; i++) input[stamped + i] = bytes[offset + i];
  for (let i = 0; i < stamped; i++) target[at + i] = input[i];
  sipHash(secret, input, stamped + lengthBytes, target, at + stamped);
}

/** Answers cookies. The secret of a day comes from one that all isolates share. */
export class Cookies {
  readonly #root: Uint8Array;
  readonly #nowSeconds: () => number;
  readonly #secret = new Uint8Array(SIP_KEY_BYTES);
  /** The day that `#secret` is of. */
  #day = -1;

  /** `root` is 16 bytes that nobody can know; `nowSeconds` counts from 1970. */
  constructor(root: Uint8Array, nowSeconds: () => number) {
    this.#root = root;
    this.#nowSeconds = nowSeconds;
  }

  /** Writes the option to `at`; returns where it ends. */
  write(client: CookieClient, target: Uint8Array, at: number): number {
    const nowSeconds = this.#nowSeconds();
    const day = Math.floor(nowSeconds / SECRET_SECONDS);
    if (day !== this.#day) this.#turn(day);
    setU16(target, at, EdnsOption.Cookie);
    setU16(target, at + 2, COOKIE_OPTION_BYTES - OPTION_HEADER_BYTES);
    writeCookie(this.#secret, client, nowSeconds, target, at + OPTION_HEADER_BYTES);
    return at + COOKIE_OPTION_BYTES;
  }

  #turn(day: number): void {
    this.#day = day;
    const seed = new Uint8Array(8);
    setU32(seed, 0, day);
    for (let half = 0; half < 2; half++) {
      seed[7] = half;
      sipHash(this.#root, seed, seed.length, this.#secret, half * SIP_HASH_BYTES);
    }
  }
}
