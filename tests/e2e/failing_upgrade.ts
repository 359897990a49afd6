/**
 * `svc` whose next program fails once it has been given everything. For the test that the former one
 * takes it back and goes on.
 */
import { main } from "../../src/cli/mod.ts";
import { DnsSupervisor } from "../../src/isolate/mod.ts";
import { TakeOver } from "../../src/node/take_over.ts";

const { begin } = TakeOver.prototype;
TakeOver.prototype.begin = async function (this: TakeOver) {
  const former = await begin.call(this);
  DnsSupervisor.prototype.start = () => Promise.reject(new Error("thrown by the test"));
  return former;
};

if (import.meta.main) Deno.exit(await main(Deno.args));
