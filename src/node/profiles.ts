import type { ProfileRequest, ProfilesPort } from "../api/mod.ts";
import type { Clock } from "../clock/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { TlsIdentity } from "../transport/mod.ts";
import { signCms } from "./cms.ts";

const OPEN_MS = 3_600_000;
/** Profiles that are open at a time; one more closes the oldest. */
const PROFILES_MAX = 64;
const TOKEN_BYTES = 16;
const HTTPS_PORT = 443;
const DOT_PORT = 853;

export interface ProfilesOptions {
  readonly clock: Clock;
  readonly randomHex: (lengthBytes: number) => string;
  /** The origin of links; `null`: they are paths. */
  readonly publicUrl: string | null;
  /** The domain that client IDs stand before; `null`: none is configured. */
  readonly serverName: string | null;
  /** Ports of the listeners. */
  readonly dohPorts: readonly number[];
  readonly dotPorts: readonly number[];
  /** By which profiles are signed; `null`: they are not. */
  readonly identity: () => TlsIdentity | null;
}

interface Open {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly expiresAtMs: number;
}

/** Configuration profiles for Apple's devices, each open for an hour to who has its address. */
export class Profiles implements ProfilesPort {
  readonly #options: ProfilesOptions;
  /** By token, the oldest first. */
  readonly #open = new Map<string, Open>();

  constructor(options: ProfilesOptions) {
    this.#options = options;
  }

  make(request: ProfileRequest): { url: string; expires_at: string; signed: boolean } {
    const { clock, randomHex, publicUrl } = this.#options;
    const text = new TextEncoder().encode(this.#profile(request));
    const signed = this.#sign(text);
    const expiresAtMs = clock.nowMs() + OPEN_MS;
    const token = randomHex(TOKEN_BYTES);
    this.#open.set(token, { bytes: signed ?? text, expiresAtMs });
    const [oldest] = this.#open.keys();
    if (this.#open.size > PROFILES_MAX) this.#open.delete(oldest);
    return {
      url: `${publicUrl ?? ""}/api/v1/profiles/${token}`,
      expires_at: new Date(expiresAtMs).toISOString(),
      signed: signed !== null,
    };
  }

  read(token: string): Uint8Array<ArrayBuffer> | null {
    const nowMs = this.#options.clock.nowMs();
    for (const [one, { expiresAtMs }] of this.#open) {
      if (nowMs >= expiresAtMs) this.#open.delete(one);
    }
    return this.#open.get(token)?.bytes ?? null;
  }

  /** `null` where there is nothing to sign by, or it can't be used. */
  #sign(text: Uint8Array): Uint8Array<ArrayBuffer> | null {
    const identity = this.#options.identity();
    if (identity === null) return null;
    const decoder = new TextDecoder();
    try {
      return signCms(text, decoder.decode(identity.cert), decoder.decode(identity.key));
    } catch (error) {
      log.warn("a profile can't be signed: it goes out as it is", { error: messageOf(error) });
      return null;
    }
  }

  #profile({ client_id: clientId, protocol }: ProfileRequest): string {
    const { serverName, dohPorts, dotPorts, randomHex } = this.#options;
    const [key, ports] = protocol === "doh" ? ["doh", dohPorts] : ["dot", dotPorts];
    if (serverName === null || ports.length === 0) {
      const missing = serverName === null ? "server.tls.server_name" : `server.tls.${key}`;
      throw new SvcError("conflict", `${missing}: it is not configured, so no device can connect`);
    }
    if (protocol === "dot" && !ports.includes(DOT_PORT)) {
      throw new SvcError(
        "conflict",
        `server.tls.dot: Apple's devices ask at port ${DOT_PORT} only: listen there, or take doh`,
      );
    }
    const [port] = ports;
    const host = port === HTTPS_PORT ? serverName : `${serverName}:${port}`;
    const settings = protocol === "doh"
      ? {
        DNSProtocol: "HTTPS",
        ServerURL: `https://${host}/dns-query${clientId === undefined ? "" : `/${clientId}`}`,
      }
      : {
        DNSProtocol: "TLS",
        ServerName: clientId === undefined ? serverName : `${clientId}.${serverName}`,
      };
    const id = `svc.${protocol}.${serverName}`;
    const uuid = () => uuidOf(randomHex(16));
    return profileText(
      {
        PayloadDisplayName: `DNS by ${serverName}`,
        PayloadDescription: `Names are looked up by ${serverName}, encrypted.`,
        PayloadIdentifier: id,
        PayloadUUID: uuid(),
      },
      {
        PayloadDisplayName: serverName,
        PayloadIdentifier: `${id}.dns`,
        PayloadUUID: uuid(),
      },
      settings,
    );
  }
}

function uuidOf(hex: string): string {
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]].map(([from, to]) => hex.slice(from, to))
    .join("-").toUpperCase();
}

type Texts = Readonly<Record<string, string>>;

const ENTITIES: Texts = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" };

/** A text inside of XML. */
function escaped(text: string): string {
  // deno-lint-ignore no-control-regex -- XML 1.0 has none of these, escaped or not
  return text.replaceAll(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd")
    .replaceAll(/[&<>"']/g, (character) => ENTITIES[character]);
}

function strings(texts: Texts): string {
  return Object.entries(texts).map(([key, text]) =>
    `<key>${escaped(key)}</key><string>${escaped(text)}</string>`
  ).join("\n");
}

function profileText(profile: Texts, payload: Texts, settings: Texts): string {
  const version = "<key>PayloadVersion</key><integer>1</integer>";
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>PayloadType</key><string>Configuration</string>
${version}
${strings(profile)}
<key>PayloadContent</key><array><dict>
<key>PayloadType</key><string>com.apple.dnsSettings.managed</string>
${version}
${strings(payload)}
<key>DNSSettings</key><dict>
${strings(settings)}
</dict>
</dict></array>
</dict></plist>
`;
}
