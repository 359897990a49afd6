/** `svc` with an error that nobody catches while it starts. */
import { main } from "../../src/cli/mod.ts";
import { DnsSupervisor } from "../../src/isolate/mod.ts";

DnsSupervisor.prototype.start = () => {
  setTimeout(() => {
    throw new Error("thrown at the start");
  });
  return Promise.withResolvers<void>().promise;
};

if (import.meta.main) Deno.exit(await main(Deno.args));
