/** Both steps that a response passes, read and scrubbed, as one. */
import type { ExtendedErrors } from "../extended_errors.ts";
import { Fit, ResponseReader } from "./response.ts";
import { Scrubbed, Scrubber, type TtlBounds } from "./scrubber.ts";

/** What both steps together made of a packet. */
export type Said = Exclude<keyof typeof Fit, "Response"> | "Answer" | "Open" | "Endless";

export const ALL_SAID: readonly Said[] = [
  ...["Mismatched", "WrongCase", "Truncated", "Failure", "Broken"] as const,
  ...["Answer", "Open", "Endless"] as const,
];

const FITS: Readonly<Record<number, Said>> = {
  [Fit.Mismatched]: "Mismatched",
  [Fit.WrongCase]: "WrongCase",
  [Fit.Truncated]: "Truncated",
  [Fit.Failure]: "Failure",
  [Fit.Broken]: "Broken",
};

const SCRUBBED: Readonly<Record<Scrubbed, Said>> = {
  [Scrubbed.Whole]: "Answer",
  [Scrubbed.Open]: "Open",
  [Scrubbed.Broken]: "Broken",
  [Scrubbed.Endless]: "Endless",
  [Scrubbed.Nothing]: "Failure",
};

export class ScrubbingReader {
  readonly response: ResponseReader = new ResponseReader();
  readonly scrubber: Scrubber;

  constructor(bounds: TtlBounds) {
    this.scrubber = new Scrubber(bounds);
  }

  read(
    packet: Uint8Array,
    length: number,
    asked: Uint8Array,
    questionEnd: number,
    dnssecOk: boolean,
    overStream = false,
    lead: Uint8Array = asked,
  ): Said {
    const fit = this.response.read(packet, length, asked, questionEnd, overStream);
    if (fit !== Fit.Response) return FITS[fit];
    return SCRUBBED[this.scrubber.scrub(this.response, dnssecOk, lead)];
  }

  get rcode(): number {
    return this.response.rcode;
  }
  get errors(): ExtendedErrors {
    return this.response.errors;
  }
  get bogus(): boolean {
    return this.response.bogus;
  }
  get isBare(): boolean {
    return this.scrubber.isBare;
  }

  get message(): Uint8Array {
    return this.scrubber.message;
  }
  get length(): number {
    return this.scrubber.length;
  }
  set length(length: number) {
    this.scrubber.length = length;
  }
  get ttl(): number {
    return this.scrubber.ttl;
  }
  get ttlOffsets(): Uint16Array {
    return this.scrubber.ttlOffsets;
  }
  get ttlCount(): number {
    return this.scrubber.ttlCount;
  }
  set ttlCount(count: number) {
    this.scrubber.ttlCount = count;
  }
}
