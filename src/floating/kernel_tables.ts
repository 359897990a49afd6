import { equalBytes } from "../bytes/mod.ts";
import {
  addressesRequest,
  addressRequest,
  type InterfaceAddress,
  type LinkFacts,
  linkRequest,
  linksRequest,
  News,
  openNetlink,
  readReplies,
} from "../netlink/mod.ts";
import type { Libc } from "./sockets.ts";

const AF_NETLINK = 16;
const MSG_DONTWAIT = 0x40;
/** More than the kernel puts into one answer. */
const ANSWER_BYTES = 64 * 1024;
/** Parts of an answer; far more than any machine has addresses for. */
const PARTS_MAX = 256;
/** Of these the request is met: there is such an address already, or there is none. */
const EEXIST = -17;
const EADDRNOTAVAIL = -99;
const ENODEV = -19;
const EPERM = -1;
/** Nothing was heard of the request: it was not met. */
const EIO = -5;

/** What a change of an address came to. */
export type Change = "done" | "as it was" | "no interface" | "not permitted" | `errno ${number}`;

/** The kernel's tables of interfaces and addresses, asked and changed by netlink. */
export class KernelTables {
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #answer = new Uint8Array(ANSWER_BYTES);
  readonly #kernel = new Uint8Array([AF_NETLINK, ...new Uint8Array(11)]);
  #sequence = 0;

  constructor(libc: Libc) {
    this.#libc = libc;
    this.#fd = openNetlink(libc.native, News.None);
  }

  /** Sends a request and gathers the answer, which is there as soon as the request is sent. */
  #ask(make: (sequence: number) => Uint8Array<ArrayBuffer>) {
    const { native, packets } = this.#libc;
    const sequence = this.#sequence = (this.#sequence + 1) & 0x7fff_ffff;
    const request = make(sequence);
    const links: LinkFacts[] = [];
    const addresses: InterfaceAddress[] = [];
    packets.sendto(this.#fd, request, BigInt(request.length), MSG_DONTWAIT, this.#kernel, 12);
    for (let part = 0; part < PARTS_MAX; part++) {
      const length = Number(
        native.recv(this.#fd, this.#answer, BigInt(ANSWER_BYTES), MSG_DONTWAIT),
      );
      if (length <= 0) break;
      const replies = readReplies(this.#answer.subarray(0, length), sequence);
      links.push(...replies.links);
      addresses.push(...replies.addresses);
      if (replies.isDone) return { links, addresses, error: replies.error };
    }
    return { links, addresses, error: EIO };
  }

  /** The interface of this name, or `null`. */
  link(name: string): LinkFacts | null {
    return this.#ask((sequence) => linkRequest(name, sequence)).links[0] ?? null;
  }

  /** Every interface with its IPv4 addresses. */
  interfaces(): { readonly name: string; readonly addresses: readonly Uint8Array[] }[] {
    const addresses = this.addresses();
    return this.#ask(linksRequest).links.map(({ name, index }) => ({
      name,
      addresses: addresses.filter((a) => a.index === index).map(({ address }) => address),
    }));
  }

  /** The IPv4 addresses of this machine. */
  addresses(): readonly InterfaceAddress[] {
    return this.#ask(addressesRequest).addresses;
  }

  add(address: InterfaceAddress): Change {
    return this.#change("add", address);
  }

  /** Takes an address away from its interface, whatever length it has there. */
  remove(index: number, address: Uint8Array): Change {
    const found = this.addresses().filter((a) =>
      a.index === index && equalBytes(a.address, address)
    );
    const changes = found.map((one) => this.#change("remove", one));
    return changes.find((change) => change !== "done") ?? changes[0] ?? "as it was";
  }

  #change(change: "add" | "remove", address: InterfaceAddress): Change {
    const { error } = this.#ask((sequence) => addressRequest(change, address, sequence));
    switch (error) {
      case 0:
        return "done";
      case EEXIST:
      case EADDRNOTAVAIL:
        return "as it was";
      case ENODEV:
        return "no interface";
      case EPERM:
        return "not permitted";
      default:
        return `errno ${-error}`;
    }
  }
}
