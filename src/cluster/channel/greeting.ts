import type { Greeting } from "../ports.ts";

/** The form of what passes on the channel. Members of another one exchange greetings alone. */
export const PROTOCOL = 1;
/** Most characters of a version or an ID. */
const TEXT_LENGTH_MAX = 128;

/** What a connection is for. */
export type Purpose = "frames" | "question";

/** A greeting as it was read. */
export type ReadGreeting =
  | { readonly kind: "greeting"; readonly greeting: Greeting; readonly purpose: Purpose }
  /** Of a member that speaks another form, or says what nobody can mean. */
  | { readonly kind: "incompatible"; readonly reason: string };

export function encodeGreeting(greeting: Greeting, purpose: Purpose): Uint8Array {
  const { version, clusterId, memberId, isWitness } = greeting;
  return new TextEncoder().encode(JSON.stringify({
    protocol: PROTOCOL,
    purpose,
    version,
    cluster: clusterId,
    member: memberId,
    witness: isWitness,
  }));
}

/** Reads a greeting; keys that are not known are of a later release and mean nothing here. */
export function decodeGreeting(payload: Uint8Array): ReadGreeting {
  let json: Record<string, unknown>;
  try {
    const parsed: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(payload));
    if (typeof parsed !== "object" || parsed === null) return incompatible("greets without words");
    json = parsed as Record<string, unknown>;
  } catch {
    return incompatible("greets without words");
  }
  const { protocol, purpose, version, cluster, member, witness } = json;
  if (protocol !== PROTOCOL) {
    const theirs = Number.isSafeInteger(protocol) ? `form ${protocol}` : "another form";
    const of = isText(version) ? ` (version ${version})` : "";
    return incompatible(`speaks ${theirs} of the channel${of}, this one form ${PROTOCOL}`);
  }
  const isOurs = purpose === "frames" || purpose === "question";
  if (!isOurs || !isText(version) || !isText(cluster) || !isText(member)) {
    return incompatible("says in its greeting what can't be understood");
  }
  if (typeof witness !== "boolean") return incompatible("does not say whether it is a witness");
  const greeting = { version, clusterId: cluster, memberId: member, isWitness: witness };
  return { kind: "greeting", greeting, purpose };
}

/** Printable ASCII: it gets into logs and reports. */
function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= TEXT_LENGTH_MAX && /^[ -~]*$/.test(value);
}

function incompatible(reason: string): ReadGreeting {
  return { kind: "incompatible", reason };
}

export function isSameGreeting(a: Greeting | null, b: Greeting | null): boolean {
  if (a === null || b === null) return a === b;
  return a.version === b.version && a.clusterId === b.clusterId && a.memberId === b.memberId &&
    a.isWitness === b.isWitness;
}
