/** A message of the kernel's routing tables (rtnetlink(7)); all numbers are the machine's own. */
const HEADER_BYTES = 16;
const ADDRESS_HEADER_BYTES = 8;
const LINK_HEADER_BYTES = 16;
const NEIGHBOUR_HEADER_BYTES = 12;
const ATTRIBUTE_BYTES = 4;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
const RTM_NEWLINK = 16;
const RTM_GETLINK = 18;
const RTM_NEWADDR = 20;
const RTM_DELADDR = 21;
const RTM_GETADDR = 22;
const NLM_F_REQUEST = 1;
const NLM_F_ACK = 4;
const NLM_F_DUMP = 0x300;
const NLM_F_CREATE_EXCL = 0x600;
const RTM_NEWNEIGH = 28;
const RTM_GETNEIGH = 30;
const NDA_DST = 1;
const NDA_LLADDR = 2;
/** States in which the kernel knows where a neighbour is: reachable, stale, being asked, by hand. */
const NUD_KNOWN = 0x02 | 0x04 | 0x08 | 0x10 | 0x80;
const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
const IFLA_ADDRESS = 1;
const IFLA_IFNAME = 3;
const IFF_UP = 1;
const IFF_LOOPBACK = 8;
const IFF_RUNNING = 0x40;
const AF_UNSPEC = 0;
const AF_INET = 2;
/** Addresses of Ethernet; ARP is for these. */
const MAC_BYTES = 6;

type Bytes = Uint8Array<ArrayBuffer>;

/** An IPv4 address of an interface. */
export interface InterfaceAddress {
  readonly index: number;
  readonly address: Bytes;
  readonly prefixLengthBits: number;
}

export interface LinkFacts {
  readonly index: number;
  readonly name: string;
  /** `null`: it has none of Ethernet's kind. */
  readonly mac: Bytes | null;
  /** It is switched on, and something is at the other end. */
  readonly isUp: boolean;
  readonly isLoopback: boolean;
}

/** Who is at the other end of a link. */
export interface Neighbour {
  /** Of 4 or 16 bytes. */
  readonly address: Bytes;
  readonly mac: Bytes;
}

/** What the kernel says to one request. */
export interface Replies {
  readonly links: readonly LinkFacts[];
  readonly addresses: readonly InterfaceAddress[];
  /** 0, or the negative `errno` of what was refused. */
  readonly error: number;
  /** Nothing more comes. */
  readonly isDone: boolean;
}

interface Attribute {
  readonly type: number;
  readonly value: Bytes;
}

function request(
  type: number,
  flags: number,
  sequence: number,
  body: Bytes,
  attributes: readonly Attribute[],
): Bytes {
  const sizes = attributes.map(({ value }) => (ATTRIBUTE_BYTES + value.length + 3) & ~3);
  const length = sizes.reduce((sum, size) => sum + size, HEADER_BYTES + body.length);
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, length, true);
  view.setUint16(4, type, true);
  view.setUint16(6, NLM_F_REQUEST | flags, true);
  view.setUint32(8, sequence, true);
  bytes.set(body, HEADER_BYTES);
  let at = HEADER_BYTES + body.length;
  for (const [i, { type: kind, value }] of attributes.entries()) {
    view.setUint16(at, ATTRIBUTE_BYTES + value.length, true);
    view.setUint16(at + 2, kind, true);
    bytes.set(value, at + ATTRIBUTE_BYTES);
    at += sizes[i];
  }
  return bytes;
}

/** Asks for one interface by its name. */
export function linkRequest(name: string, sequence: number): Bytes {
  const value = new TextEncoder().encode(`${name}\0`);
  const body = new Uint8Array(LINK_HEADER_BYTES);
  return request(RTM_GETLINK, 0, sequence, body, [{ type: IFLA_IFNAME, value }]);
}

/** Asks for every interface. */
export function linksRequest(sequence: number): Bytes {
  return request(RTM_GETLINK, NLM_F_DUMP, sequence, new Uint8Array(LINK_HEADER_BYTES), []);
}

function addressHeader(prefixLengthBits: number, index: number): Bytes {
  const header = new Uint8Array(ADDRESS_HEADER_BYTES);
  header[0] = AF_INET;
  header[1] = prefixLengthBits;
  new DataView(header.buffer).setUint32(4, index, true);
  return header;
}

/** Asks for the IPv4 addresses of every interface. */
export function addressesRequest(sequence: number): Bytes {
  return request(RTM_GETADDR, NLM_F_DUMP, sequence, addressHeader(0, 0), []);
}

/** Asks to add an address to its interface, or to take it away. */
export function addressRequest(
  change: "add" | "remove",
  { index, address, prefixLengthBits }: InterfaceAddress,
  sequence: number,
): Bytes {
  const [type, flags] = change === "add"
    ? [RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE_EXCL]
    : [RTM_DELADDR, NLM_F_ACK];
  return request(type, flags, sequence, addressHeader(prefixLengthBits, index), [
    { type: IFA_LOCAL, value: address },
    { type: IFA_ADDRESS, value: address },
  ]);
}

/** Asks for the neighbours of every interface, IPv4 and IPv6. */
export function neighboursRequest(sequence: number): Bytes {
  const body = new Uint8Array(NEIGHBOUR_HEADER_BYTES);
  body[0] = AF_UNSPEC;
  return request(RTM_GETNEIGH, NLM_F_DUMP, sequence, body, []);
}

function* attributesOf(bytes: Bytes, at: number): Generator<Attribute> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  while (at + ATTRIBUTE_BYTES <= bytes.length) {
    const length = view.getUint16(at, true);
    if (length < ATTRIBUTE_BYTES || at + length > bytes.length) return;
    const value = bytes.slice(at + ATTRIBUTE_BYTES, at + length);
    yield { type: view.getUint16(at + 2, true), value };
    at += (length + 3) & ~3;
  }
}

function readLink(message: Bytes): LinkFacts {
  const view = new DataView(message.buffer, message.byteOffset);
  const flags = view.getUint32(HEADER_BYTES + 8, true);
  let name = "";
  let mac: Bytes | null = null;
  for (const { type, value } of attributesOf(message, HEADER_BYTES + LINK_HEADER_BYTES)) {
    if (type === IFLA_IFNAME) name = new TextDecoder().decode(value).replace(/\0.*$/, "");
    else if (type === IFLA_ADDRESS && value.length === MAC_BYTES) mac = value;
  }
  return {
    index: view.getInt32(HEADER_BYTES + 4, true),
    name,
    mac,
    isUp: (flags & IFF_UP) !== 0 && (flags & IFF_RUNNING) !== 0,
    isLoopback: (flags & IFF_LOOPBACK) !== 0,
  };
}

function readAddress(message: Bytes): InterfaceAddress | null {
  if (message[HEADER_BYTES] !== AF_INET) return null;
  const view = new DataView(message.buffer, message.byteOffset);
  let address: Bytes | null = null;
  for (const { type, value } of attributesOf(message, HEADER_BYTES + ADDRESS_HEADER_BYTES)) {
    if (value.length !== 4) continue;
    // On a link of two ends only, the address there differs from the one here.
    if (type === IFA_LOCAL || (type === IFA_ADDRESS && address === null)) address = value;
  }
  return address === null ? null : {
    index: view.getUint32(HEADER_BYTES + 4, true),
    address,
    prefixLengthBits: message[HEADER_BYTES + 1],
  };
}

function readNeighbour(message: Bytes): Neighbour | null {
  const view = new DataView(message.buffer, message.byteOffset);
  if ((view.getUint16(HEADER_BYTES + 8, true) & NUD_KNOWN) === 0) return null;
  let [address, mac]: (Bytes | null)[] = [null, null];
  for (const { type, value } of attributesOf(message, HEADER_BYTES + NEIGHBOUR_HEADER_BYTES)) {
    if (type === NDA_DST && (value.length === 4 || value.length === 16)) address = value;
    else if (type === NDA_LLADDR && value.length === MAC_BYTES) mac = value;
  }
  return address === null || mac === null ? null : { address, mac };
}

interface Message {
  readonly type: number;
  readonly sequence: number;
  /** Its header is at its start. */
  readonly bytes: Bytes;
}

/** The messages of what one call received, up to one that is cut off. */
function* messagesIn(bytes: Bytes): Generator<Message> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at + HEADER_BYTES <= bytes.length;) {
    const length = view.getUint32(at, true);
    if (length < HEADER_BYTES || at + length > bytes.length) return;
    yield {
      type: view.getUint16(at + 4, true),
      sequence: view.getUint32(at + 8, true),
      bytes: bytes.slice(at, at + length),
    };
    at += (length + 3) & ~3;
  }
}

/** Reads what one call received; messages of other requests are passed over. */
export function readReplies(bytes: Bytes, sequence: number): Replies {
  const links: LinkFacts[] = [];
  const addresses: InterfaceAddress[] = [];
  for (const message of messagesIn(bytes)) {
    if (message.sequence !== sequence) continue;
    const { type, bytes: { buffer, byteOffset, length } } = message;
    if (type === NLMSG_ERROR && length >= HEADER_BYTES + 4) {
      const error = new DataView(buffer, byteOffset).getInt32(HEADER_BYTES, true);
      return { links, addresses, error, isDone: true };
    }
    if (type === NLMSG_DONE) return { links, addresses, error: 0, isDone: true };
    if (type === RTM_NEWLINK && length >= HEADER_BYTES + LINK_HEADER_BYTES) {
      links.push(readLink(message.bytes));
    } else if (type === RTM_NEWADDR && length >= HEADER_BYTES + ADDRESS_HEADER_BYTES) {
      const address = readAddress(message.bytes);
      if (address !== null) addresses.push(address);
    }
  }
  return { links, addresses, error: 0, isDone: false };
}

/** The neighbours that one call told of, asked for or as news; those that are gone are left out. */
export function readNeighbours(bytes: Bytes): Neighbour[] {
  const found: Neighbour[] = [];
  for (const { type, bytes: message } of messagesIn(bytes)) {
    if (type !== RTM_NEWNEIGH || message.length < HEADER_BYTES + NEIGHBOUR_HEADER_BYTES) continue;
    const neighbour = readNeighbour(message);
    if (neighbour !== null) found.push(neighbour);
  }
  return found;
}
