/** How a blocked name is answered. */
export const BlockResponse = {
  /** `0.0.0.0` and `::`. */
  NullIp: "null_ip",
  Nxdomain: "nxdomain",
  Refused: "refused",
  /** `blocking_ipv4` and `blocking_ipv6`; a family left unset answers its null address. */
  CustomIp: "custom_ip",
} as const;
export type BlockResponse = typeof BlockResponse[keyof typeof BlockResponse];

/** Who may ask: addresses, networks without host bits, and client IDs. Loopback always may. */
export interface AccessSettings {
  /** Empty: everybody. */
  readonly allowed: readonly string[];
  /** Outranks `allowed`. */
  readonly disallowed: readonly string[];
}

/** `/api/v1/settings`; one object, replicated, with the spelling of its JSON. */
export interface Settings {
  /** Off: no query of any client is filtered. */
  readonly protection: boolean;
  readonly block_response: BlockResponse;
  readonly blocking_ipv4: string | null;
  readonly blocking_ipv6: string | null;
  /** Seconds. */
  readonly block_ttl: number;
  /** Seconds. */
  readonly list_update_interval: number;
  readonly access: AccessSettings;
}

/** The networks that a fresh node answers; without them it would be an open resolver at once. */
export const FRESH_NODE_ALLOWED: readonly string[] = [
  "127.0.0.0/8", // Loopback (RFC 1122 §3.2.1.3).
  "::1",
  "10.0.0.0/8", // Private use (RFC 1918 §3).
  "172.16.0.0/12",
  "192.168.0.0/16",
  "169.254.0.0/16", // Link-local (RFC 3927).
  "100.64.0.0/10", // Carrier-grade NAT (RFC 6598).
  "fc00::/7", // Unique local (RFC 4193).
  "fe80::/10", // Link-local (RFC 4291 §2.5.6).
];

/** What a setting is when nobody says otherwise: those that a fresh node stores. */
export const DEFAULT_SETTINGS: Settings = {
  protection: true,
  block_response: BlockResponse.NullIp,
  blocking_ipv4: null,
  blocking_ipv6: null,
  block_ttl: 10,
  list_update_interval: 86_400,
  access: { allowed: FRESH_NODE_ALLOWED, disallowed: [] },
};
