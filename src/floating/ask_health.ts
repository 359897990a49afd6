import type { HostPort } from "../addr/mod.ts";
import { HealthProbe } from "./health_probe.ts";
import type { Libc } from "./sockets.ts";
import { Watcher } from "../native/mod.ts";

/** One that fails may be bad luck; so many in a row are none. */
const CHECKS_MAX = 3;

/** Says whether this node's own DNS answers, by the checks that `svc vrrp` makes. */
export async function askHealth(libc: Libc, target: HostPort, checkMs?: number): Promise<boolean> {
  const watcher = new Watcher(libc.native);
  let failed = 0;
  let isGood = false;
  const probe = new HealthProbe(libc, target, {
    watch: (fd, onReadable) => watcher.watch(fd, onReadable),
    onResult: (good) => {
      isGood = good;
      if (good || ++failed === CHECKS_MAX) watcher.stop();
    },
  }, checkMs);
  const served = watcher.run();
  probe.start();
  await served;
  probe.stop();
  return isGood;
}
