import type { HostPort } from "../addr/mod.ts";
import { log } from "../log.ts";
import { openNative } from "../native/mod.ts";
import { openPackets, openProcess } from "../native/system.ts";
import { Notifier } from "../process/mod.ts";

/** The watchdog hears this often in its time: one that is lost does no harm. */
const TIMES = 3;

/** Who supervises this service, if anybody does. */
export function findSupervisor(): Notifier | null {
  const [process, native, packets] = [openProcess(), openNative(), openPackets()];
  if (process === null || native === null || packets === null) return null;
  try {
    return Notifier.of(process, native, packets);
  } finally {
    process.close();
  }
}

/**
 * Tells the watchdog again and again that all is well, for as long as queries are answered: DNS is
 * asked as clients ask it. Returns what ends that.
 */
export async function feedWatchdog(
  notifier: Pick<Notifier, "watchdogMs" | "alive"> | null,
  listening: readonly HostPort[],
): Promise<() => void> {
  const [native, packets] = [openNative(), openPackets()];
  const none = () => {};
  const watchdogMs = notifier?.watchdogMs ?? null;
  if (notifier === null || watchdogMs === null || native === null || packets === null) return none;
  const { askHealth, healthTarget } = await import("../floating/mod.ts");
  const target = healthTarget(listening, null);
  if (target === null) log.warn("the watchdog can't ask DNS: nothing is listened on over UDP");
  let isOver = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = async () => {
    // Without a descriptor left it can't be asked; later there may be one.
    const isWell = target === null ||
      await askHealth({ native, packets }, target).catch((error) => {
        log.error("DNS can't be asked whether it answers", { error });
        return false;
      });
    if (isOver) return;
    if (isWell) notifier.alive();
    else log.error("DNS does not answer: the watchdog is not told that all is well");
    timer = setTimeout(() => void look(), watchdogMs / TIMES);
    Deno.unrefTimer(Number(timer));
  };
  void look();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
