import type { ComponentChildren } from "preact";
import { t } from "../text/mod.ts";
import { Button, Skeleton } from "./basics.tsx";
import { errorText, linksIn } from "./error_text.ts";
import { Icon } from "./icon.tsx";
import { toast } from "./toasts.tsx";
import type { Loaded } from "../data/poll.ts";

/** Says a failure of what was done at once. */
export function sayError(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  toast(errorText(error), null, "danger", linksIn(error));
}

/** Runs what somebody asked for; says where it fails. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    sayError(error);
    return false;
  }
}

export function ErrorBox({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <div class="error-box" role="alert">
      <Icon name="circle-alert" size={18} />
      <p>{errorText(error)}</p>
      {onRetry !== undefined && (
        <Button small icon="refresh-cw" label={t.common.retry} onClick={onRetry} />
      )}
    </div>
  );
}

/** Shows what was loaded; before that, that it is on its way or why it is not there. */
export function Shown<T>(
  { of: { data, error, isSlow, reload }, rows, children }: {
    of: Loaded<T>;
    rows?: number;
    children: (data: T) => ComponentChildren;
  },
) {
  if (data.value !== null) return <>{children(data.value)}</>;
  if (error.value !== null) return <ErrorBox error={error.value} onRetry={reload} />;
  return isSlow.value ? <Skeleton {...(rows !== undefined && { rows })} /> : null;
}
