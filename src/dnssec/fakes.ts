/** What stands for the surroundings of a validator in tests: zones in memory, and a cache. */
import assert from "node:assert/strict";
import {
  encodeResponse,
  parseRecord,
  type TextRecord,
  wireName,
} from "../../tests/replay/records.ts";
import { Qtype, Rcode } from "../dns/mod.ts";
import type { ChainPorts, Cut, CutCache, Response } from "./chain.ts";
import { nameKey } from "./names.ts";
import { readSections, type RrSet } from "./rrset.ts";
import { verifySignature } from "./verify.ts";

/** Responses by way of a packet, as the wire brings them. */
export function responseOf(
  name: string,
  type: number,
  sections: { readonly answer?: readonly string[]; readonly authority?: readonly string[] },
  rcode: number = Rcode.NoError,
): Response {
  const question = { name: wireName(name), type };
  const answer = (sections.answer ?? []).map(parseRecord);
  const authority = (sections.authority ?? []).map(parseRecord);
  return responseOfRecords(question, rcode, answer, authority);
}

export function responseOfRecords(
  question: { readonly name: Uint8Array; readonly type: number },
  rcode: number,
  answer: readonly TextRecord[],
  authority: readonly TextRecord[],
): Response {
  const read = readSections(encodeResponse(question, rcode, { answer, authority }));
  assert(read !== null);
  return { rcode, answer: read.answer, authority: read.authority };
}

/** RRsets of records in presentation form. */
export function rrsetsOf(lines: readonly string[]): readonly RrSet[] {
  return responseOf(".", Qtype.A, { answer: lines }).answer;
}

export class FakeCuts implements CutCache {
  readonly cuts = new Map<string, Cut>();
  get(name: Uint8Array): Cut | undefined {
    return this.cuts.get(nameKey(name));
  }
  set(name: Uint8Array, cut: Cut): void {
    this.cuts.set(nameKey(name), cut);
  }
}

/** Ports that count what they are asked for. */
export class FakePorts implements ChainPorts {
  readonly cuts = new FakeCuts();
  checks = 0;
  readonly asked: string[] = [];

  constructor(
    readonly answer: (
      name: Uint8Array,
      type: number,
      attempt: number,
    ) => Response | null | Promise<Response | null>,
  ) {}

  lookUp = async (name: Uint8Array, type: number, attempt: number): Promise<Response | null> => {
    this.asked.push(`${nameKey(name)} ${type}`);
    return await this.answer(name, type, attempt);
  };

  check: ChainPorts["check"] = (check) => {
    this.checks++;
    return Promise.resolve(verifySignature(check));
  };
}
