import { t } from "../text/mod.ts";
import { Tag } from "./basics.tsx";
import { milliseconds } from "./format.ts";

/** How soon an upstream answers, and whether it does. */
export function UpstreamHealth(
  { latencyMs, isHealthy }: { latencyMs: number | null; isHealthy: boolean },
) {
  return (
    <>
      {latencyMs !== null && <span class="figure">{milliseconds(latencyMs)}</span>}
      {isHealthy
        ? <Tag kind="ok" icon="check">{t.overview.answers}</Tag>
        : <Tag kind="danger" icon="triangle-alert">{t.overview.silent}</Tag>}
    </>
  );
}
