/**
 * `svc` whose parts fail behind the back of whoever calls them: what each method of `FAULTS` does is
 * done, and beside it an exception is thrown in a later turn and a promise rejected that nobody waits
 * for. For the test that none of that ends DNS.
 */
import { main } from "../../src/cli/mod.ts";
import { ServerCertificate } from "../../src/node/certificate.ts";
import { Policy } from "../../src/node/policy.ts";
import { Telemetry } from "../../src/node/telemetry.ts";
import { QuerylogSupervisor } from "../../src/isolate/mod.ts";
import { ListKeeper } from "../../src/lists/mod.ts";

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** By what is said to fail: who, and by which method. */
const FAULTS: Readonly<Record<string, readonly [object, string]>> = {
  "an API handler": [Policy.prototype, "explain"],
  "a list download": [ListKeeper.prototype, "refresh"],
  "the query log": [QuerylogSupervisor.prototype, "search"],
  "telemetry": [Telemetry.prototype, "stop"],
  "a certificate": [ServerCertificate.prototype, "renewFor"],
};

for (const [place, [prototype, name]] of Object.entries(FAULTS)) {
  const original = Reflect.get(prototype, name) as Method;
  Reflect.set(prototype, name, function (this: unknown, ...args: unknown[]) {
    setTimeout(() => {
      throw new Error(`thrown in ${place}`);
    });
    void Promise.reject(new Error(`rejected in ${place}`));
    return original.apply(this, args);
  });
}
// The export is asked for its failures with each scrape.
const { get } = Object.getOwnPropertyDescriptor(Telemetry.prototype, "failures")!;
Object.defineProperty(Telemetry.prototype, "failures", {
  get(this: Telemetry) {
    void Promise.reject(new Error("rejected in the export"));
    setTimeout(() => {
      throw new Error("thrown in the export");
    });
    return get!.call(this);
  },
});

if (import.meta.main) Deno.exit(await main(Deno.args));
