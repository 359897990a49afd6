/** Follows the aliases of an answer to where its question ends (RFC 1034 §3.6.2, RFC 6672). */
import { equalNames, NAME_BYTES_MAX, Qclass, Qtype, skipPlainName } from "../dns/mod.ts";
import { findAlias, findRrSet } from "./chain.ts";
import { ALIASES_MAX } from "./limits.ts";
import type { RrSet } from "./rrset.ts";

/** A question of class IN. */
export interface Question {
  readonly name: Uint8Array;
  readonly type: number;
}

/** An alias on the way. */
export interface Alias {
  /** CNAME or DNAME: what is to be signed. */
  readonly rrset: RrSet;
  /** The CNAME that a DNAME stands for, where the answer holds it. */
  readonly synthesized: RrSet | null;
}

export interface Trail {
  readonly aliases: readonly Alias[];
  /** The name that the question ends at. */
  readonly name: Uint8Array;
  /** What the answer holds of the type there; none is to be proven. */
  readonly rrsets: readonly RrSet[];
  /** `long`: a DNAME makes a name that is too long (YXDOMAIN); `loop`: there is no end within bounds. */
  readonly end: "found" | "missing" | "long" | "loop";
}

/** The target of a CNAME or DNAME, or `null` where it has not its form. */
function targetOf({ rdatas }: RrSet): Uint8Array | null {
  return skipPlainName(rdatas[0], 0) === rdatas[0].length ? rdatas[0] : null;
}

/** `name` with the DNAME's owner replaced by its target, or `null` where that is too long. */
function substitute(name: Uint8Array, dname: RrSet, target: Uint8Array): Uint8Array | null {
  const prefix = name.subarray(0, name.length - dname.owner.length);
  if (prefix.length + target.length > NAME_BYTES_MAX) return null;
  const made = new Uint8Array(prefix.length + target.length);
  made.set(prefix);
  made.set(target, prefix.length);
  return made;
}

/** What an answer holds for a name and a type: for `ANY`, all that is there. */
function findAnswers(answer: readonly RrSet[], name: Uint8Array, type: number): readonly RrSet[] {
  return answer.filter((rrset) =>
    (rrset.type === type || (type === Qtype.ANY && rrset.type !== Qtype.RRSIG)) &&
    rrset.cls === Qclass.IN && equalNames(rrset.owner, 0, name, 0)
  );
}

/** Follows an answer section; what is not on the way has no part in the answer. */
export function followAliases(answer: readonly RrSet[], question: Question): Trail {
  const { type } = question;
  const aliases: Alias[] = [];
  let { name } = question;
  const ended = (end: Trail["end"], rrsets: readonly RrSet[] = []): Trail => {
    return { aliases, name, rrsets, end };
  };
  for (;;) {
    const cname = findRrSet(answer, name, Qtype.CNAME);
    const rrset = findAlias(answer, name) ?? cname;
    const isSynthesized = rrset?.type === Qtype.DNAME;
    // Below a DNAME nothing is there but the CNAME that it stands for, which is not signed.
    const rrsets = findAnswers(answer, name, type).filter((found) =>
      !(isSynthesized && found === cname)
    );
    if (rrsets.length > 0) return ended("found", rrsets);
    const target = rrset === undefined ? null : targetOf(rrset);
    if (rrset === undefined || target === null) return ended("missing");
    if (!isSynthesized) {
      aliases.push({ rrset, synthesized: null });
      name = target;
    } else {
      const made = substitute(name, rrset, target);
      if (made === null) {
        aliases.push({ rrset, synthesized: null });
        return ended("long");
      }
      // A CNAME that says anything else is not what the DNAME stands for.
      const said = cname === undefined ? null : targetOf(cname);
      const agrees = said !== null && equalNames(said, 0, made, 0);
      aliases.push({ rrset, synthesized: agrees ? cname! : null });
      if (cname !== undefined && !agrees) aliases.push({ rrset: cname, synthesized: null });
      if (type === Qtype.CNAME || type === Qtype.ANY) return ended("found");
      name = made;
    }
    if (aliases.length > ALIASES_MAX) return ended("loop");
  }
}
