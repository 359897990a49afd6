/** A certificate of the service's own for these names, with its key; see `certificates.ts`. */
export async function makeStandIn(domains: readonly string[], nowMs: number): Promise<string> {
  const { makeStandIn } = await import("./certificates.ts");
  return await makeStandIn(domains, nowMs);
}
