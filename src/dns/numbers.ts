/** IANA's numbers, as far as they are in use, and the bits of the header. */

/** Bytes of a message's header (RFC 1035 §4.1.1). */
export const HEADER_BYTES = 12;
/** Most bytes of a message over UDP that we take and send (RFC 9715: no fragments). */
export const UDP_PAYLOAD_MAX = 1232;
/** What a client without EDNS takes over UDP, in bytes (RFC 1035 §2.3.4). */
export const UDP_PAYLOAD_CLASSIC = 512;

// The second word of the header (RFC 1035 §4.1.1, RFC 4035 §3.1.6 and §3.2.2).
export const QR_BIT = 0x8000;
export const OPCODE_MASK = 0x7800;
export const AA_BIT = 0x0400;
export const TC_BIT = 0x0200;
export const RD_BIT = 0x0100;
export const RA_BIT = 0x0080;
export const AD_BIT = 0x0020;
export const CD_BIT = 0x0010;
export const RCODE_MASK = 0x000f;
/** DO in the flags of an OPT record (RFC 6891 §6.1.4). */
export const DO_BIT = 0x8000;

/** Record types and those that only a question asks for. A packet may carry any 16 bits. */
export const Qtype = {
  A: 1,
  NS: 2,
  MD: 3,
  MF: 4,
  CNAME: 5,
  SOA: 6,
  MB: 7,
  MG: 8,
  MR: 9,
  NULL: 10,
  WKS: 11,
  PTR: 12,
  HINFO: 13,
  MINFO: 14,
  MX: 15,
  TXT: 16,
  RP: 17,
  AFSDB: 18,
  X25: 19,
  ISDN: 20,
  RT: 21,
  NSAP: 22,
  "NSAP-PTR": 23,
  SIG: 24,
  KEY: 25,
  PX: 26,
  GPOS: 27,
  AAAA: 28,
  LOC: 29,
  NXT: 30,
  EID: 31,
  NIMLOC: 32,
  SRV: 33,
  ATMA: 34,
  NAPTR: 35,
  KX: 36,
  CERT: 37,
  A6: 38,
  DNAME: 39,
  SINK: 40,
  OPT: 41,
  APL: 42,
  DS: 43,
  SSHFP: 44,
  IPSECKEY: 45,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  DHCID: 49,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SMIMEA: 53,
  HIP: 55,
  NINFO: 56,
  RKEY: 57,
  TALINK: 58,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  CSYNC: 62,
  ZONEMD: 63,
  SVCB: 64,
  HTTPS: 65,
  DSYNC: 66,
  SPF: 99,
  NID: 104,
  L32: 105,
  L64: 106,
  LP: 107,
  EUI48: 108,
  EUI64: 109,
  NXNAME: 128,
  TKEY: 249,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  MAILB: 253,
  MAILA: 254,
  ANY: 255,
  URI: 256,
  CAA: 257,
  AVC: 258,
  DOA: 259,
  AMTRELAY: 260,
  RESINFO: 261,
  WALLET: 262,
  TA: 32768,
  DLV: 32769,
} as const;
export type Qtype = typeof Qtype[keyof typeof Qtype];

export const Qclass = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 } as const;
export type Qclass = typeof Qclass[keyof typeof Qclass];

/** Response codes; those from 16 on need an OPT record for their upper bits (RFC 6891 §6.1.3). */
export const Rcode = {
  NoError: 0,
  FormErr: 1,
  ServFail: 2,
  NXDomain: 3,
  NotImp: 4,
  Refused: 5,
  YXDomain: 6,
  YXRrSet: 7,
  NXRrSet: 8,
  NotAuth: 9,
  NotZone: 10,
  DsoTypeNI: 11,
  BadVers: 16,
  BadKey: 17,
  BadTime: 18,
  BadMode: 19,
  BadName: 20,
  BadAlg: 21,
  BadTrunc: 22,
  BadCookie: 23,
} as const;
export type Rcode = typeof Rcode[keyof typeof Rcode];

/** Operations; `opcode << 11` is their place in the header's flags. */
export const Opcode = { Query: 0, IQuery: 1, Status: 2, Notify: 4, Update: 5, Dso: 6 } as const;
export type Opcode = typeof Opcode[keyof typeof Opcode];

export const EdnsOption = {
  Nsid: 3,
  Dau: 5,
  Dhu: 6,
  N3u: 7,
  ClientSubnet: 8,
  Expire: 9,
  Cookie: 10,
  TcpKeepalive: 11,
  Padding: 12,
  Chain: 13,
  KeyTag: 14,
  Ede: 15,
  ReportChannel: 18,
  ZoneVersion: 19,
} as const;
export type EdnsOption = typeof EdnsOption[keyof typeof EdnsOption];

/** Extended errors (RFC 8914 §4). */
export const Ede = {
  Other: 0,
  UnsupportedDnskeyAlgorithm: 1,
  UnsupportedDsDigestType: 2,
  StaleAnswer: 3,
  ForgedAnswer: 4,
  DnssecIndeterminate: 5,
  DnssecBogus: 6,
  SignatureExpired: 7,
  SignatureNotYetValid: 8,
  DnskeyMissing: 9,
  RrsigsMissing: 10,
  NoZoneKeyBitSet: 11,
  NsecMissing: 12,
  CachedError: 13,
  NotReady: 14,
  Blocked: 15,
  Censored: 16,
  Filtered: 17,
  Prohibited: 18,
  StaleNxdomainAnswer: 19,
  NotAuthoritative: 20,
  NotSupported: 21,
  NoReachableAuthority: 22,
  NetworkError: 23,
  InvalidData: 24,
  SignatureExpiredBeforeValid: 25,
  TooEarly: 26,
  UnsupportedNsec3Iterations: 27,
} as const;
export type Ede = typeof Ede[keyof typeof Ede];

/** The registry's words for each code, by the code (RFC 8914 §5.2). */
const EDE_PURPOSES: readonly string[] = [
  "Other",
  "Unsupported DNSKEY Algorithm",
  "Unsupported DS Digest Type",
  "Stale Answer",
  "Forged Answer",
  "DNSSEC Indeterminate",
  "DNSSEC Bogus",
  "Signature Expired",
  "Signature Not Yet Valid",
  "DNSKEY Missing",
  "RRSIGs Missing",
  "No Zone Key Bit Set",
  "NSEC Missing",
  "Cached Error",
  "Not Ready",
  "Blocked",
  "Censored",
  "Filtered",
  "Prohibited",
  "Stale NXDOMAIN Answer",
  "Not Authoritative",
  "Not Supported",
  "No Reachable Authority",
  "Network Error",
  "Invalid Data",
  "Signature Expired before Valid",
  "Too Early",
  "Unsupported NSEC3 Iterations Value",
];

/** Largest number of a type or a class. */
const U16_MAX = 0xffff;

const TYPE_NAMES = namesOf(Qtype);
const CLASS_NAMES = namesOf(Qclass);
const RCODE_NAMES = namesOf(Rcode);

function namesOf(set: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(set).map(([name, number]) => [number, name.toUpperCase()]));
}

/** `A`, `HTTPS`, or `TYPE65280` for a type that has no name (RFC 3597 §5). */
export function qtypeName(type: number): string {
  return TYPE_NAMES.get(type) ?? `TYPE${type}`;
}

/** Reads what `qtypeName` writes, in either case, or returns `null`. */
export function parseQtype(text: string): number | null {
  const name = text.toUpperCase();
  if (Object.hasOwn(Qtype, name)) return Qtype[name as keyof typeof Qtype];
  const digits = /^TYPE(0|[1-9]\d{0,4})$/.exec(name)?.[1];
  return digits === undefined || Number(digits) > U16_MAX ? null : Number(digits);
}

/** `NOERROR`, `NXDOMAIN`, or `RCODE12` for one that has no name. */
export function rcodeName(rcode: number): string {
  return RCODE_NAMES.get(rcode) ?? `RCODE${rcode}`;
}

/** `IN`, `CH`, or `CLASS17` for one that has no name (RFC 3597 §5). */
export function className(cls: number): string {
  return CLASS_NAMES.get(cls) ?? `CLASS${cls}`;
}

/** The registry's words for an extended error, or `EDE 4711` for one that has none. */
export function edePurpose(code: number): string {
  return EDE_PURPOSES[code] ?? `EDE ${code}`;
}
