import { messageOf, SvcError } from "../errors.ts";

/**
 * Has `tell` hear of everything in this isolate that nobody catches: whoever supervises it then
 * replaces it. Returns what tells of an error that was caught and can't be lived with.
 */
export function tellCrashes(tell: (error: string) => void): (error: unknown) => void {
  const crash = (error: unknown) => tell(detailOf(error));
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    crash(event.reason);
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    crash(event.error);
  });
  return crash;
}

/** What a user can mend says so itself; anything else is ours to find. */
function detailOf(error: unknown): string {
  const isOurs = error instanceof Error && !(error instanceof SvcError);
  return isOurs ? error.stack ?? error.message : messageOf(error);
}
