import { messageOf, SvcError } from "../errors.ts";

/** The exit code of a command that failed. */
const EXIT_FAILED = 1;

/** Runs a command; what it throws becomes one line, and the exit code. */
export async function runCommand(name: string, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    console.error(`svc ${name}: ${messageOf(error)}`);
    const isExpected = error instanceof SvcError || isOfSystem(error);
    if (!isExpected && error instanceof Error) console.error(error.stack);
    return EXIT_FAILED;
  }
}

/** Says whether the system refused something, which says what; not the runtime's own fence. */
function isOfSystem(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === "string" && /^E(?!RR_)[A-Z0-9]+$/.test(code);
}
