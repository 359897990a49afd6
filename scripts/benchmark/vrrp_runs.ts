/**
 * How long the floating address answers nothing when the node that holds it stops, fails or is cut
 * off: a client in a namespace asks it a DNS query every 20 ms, and the longest stretch without an
 * answer counts. The second node runs svc, then keepalived; the interval is the default.
 */
import { Service } from "../../tests/e2e/harness.ts";
import {
  Asking,
  NodeFiles,
  type Running,
  Segment,
  startKeepalived,
  startVrrp,
  vrrpConfig,
} from "../../tests/e2e/segment.ts";
import { isInstalled } from "./processes.ts";

const INTERVAL_MS = 1_000;
/** The client asks for so long before anything happens. */
const BEFORE_MS = 1_000;
/** What a client may miss (its query every 20 ms included), where there is a limit. */
export const STOPPED_MS_MAX = 800;
export const CUT_OFF_MS_MAX = 3_700;

export interface VrrpSample {
  /** Who the second node is, and how they announce. */
  readonly pair: string;
  readonly event: string;
  /** The longest stretch without an answer. */
  readonly gapMs: number;
  readonly lost: number;
  readonly asked: number;
  readonly limitMs: number | null;
}

interface Pair {
  readonly segment: Segment;
  readonly files: NodeFiles;
  readonly unicast: boolean;
  readonly samples: VrrpSample[];
  readonly name: string;
  readonly progress: (text: string) => void;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Has something happen to the holder, and waits until node `next` holds the address. */
async function follow(
  { segment, samples, name, progress }: Pair,
  event: string,
  limitMs: number | null,
  next: number,
  happen: () => unknown,
): Promise<void> {
  await using asking = new Asking(segment);
  await pause(BEFORE_MS);
  await happen();
  await segment.settled(next);
  await pause(BEFORE_MS);
  const { asked, lost, gaps } = await asking.stop();
  const gapMs = Math.max(0, ...gaps.map(({ lengthMs }) => lengthMs));
  progress(`${name}: ${event}: ${gapMs.toFixed(0)} ms`);
  samples.push({ pair: name, event, gapMs, lost, asked, limitMs });
}

async function measurePair(pair: Pair, isKeepalived: boolean): Promise<void> {
  const { segment, files, unicast } = pair;
  const configs = [0, 1].map((i) => vrrpConfig(i, { unicast, interval_ms: INTERVAL_MS }));
  const paths = await Promise.all(configs.map((config, i) => files.write(`${i}`, config)));
  const serve = (i: number) => Service.start({ config: configs[i], prefix: segment.on(i) });
  const keepalived = (priority: number) =>
    startKeepalived(segment, files, { priority, unicast, interval: INTERVAL_MS / 1_000 });
  let dns = await serve(0);
  let first: Running | undefined;
  await using _dns1 = await serve(1);
  let second = isKeepalived ? await keepalived(100) : startVrrp(segment, 1, paths[1]);
  try {
    await segment.held(1);
    const back = (event: string) =>
      follow(pair, event, null, 0, () => first = startVrrp(segment, 0, paths[0]));
    await back("a node of a higher priority starts");
    await follow(pair, "svc vrrp stops", STOPPED_MS_MAX, 1, () => first!.end("SIGTERM"));
    await back("it starts again");
    const again = () =>
      follow(pair, "the DNS server is there again", null, 0, async () => {
        await dns[Symbol.asyncDispose]();
        dns = await serve(0);
      });
    await follow(pair, "the DNS server stops", STOPPED_MS_MAX, 1, () => dns.stop());
    await again();
    // The system takes the memory away first, and closes its sockets then.
    await follow(pair, "the DNS server is killed", null, 1, () => dns.kill("SIGKILL"));
    await again();
    await follow(pair, "the DNS server hangs", null, 1, () => dns.kill("SIGSTOP"));
    await follow(pair, "it answers again", null, 0, () => dns.kill("SIGCONT"));
    await follow(pair, "the node is cut off", CUT_OFF_MS_MAX, 1, () => segment.setCut(0, true));
    await follow(pair, "the split is healed", null, 0, () => segment.setCut(0, false));
    if (!isKeepalived) return;
    await second.end("SIGTERM");
    await follow(pair, "keepalived of a higher priority starts", null, 1, async () => {
      second = await keepalived(200);
    });
    await follow(pair, "keepalived stops", STOPPED_MS_MAX, 0, () => second.end("SIGTERM"));
    await follow(pair, "keepalived starts again", null, 1, async () => {
      second = await keepalived(200);
    });
    await follow(
      pair,
      "keepalived's node is cut off",
      CUT_OFF_MS_MAX,
      0,
      () => segment.setCut(1, true),
    );
  } finally {
    await first?.[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
    await dns[Symbol.asyncDispose]();
  }
}

/** Measures each pair once. */
export async function measureVrrp(progress: (text: string) => void): Promise<VrrpSample[]> {
  const samples: VrrpSample[] = [];
  for (const isKeepalived of [false, true]) {
    if (isKeepalived && !isInstalled("keepalived")) {
      progress("keepalived is not installed: measuring without it");
      continue;
    }
    for (const unicast of [false, true]) {
      await using segment = await Segment.make();
      await using files = await NodeFiles.make();
      const name = `${isKeepalived ? "keepalived" : "svc"}, ${unicast ? "unicast" : "multicast"}`;
      await measurePair({ segment, files, unicast, samples, name, progress }, isKeepalived);
    }
  }
  return samples;
}
