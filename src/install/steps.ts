import { messageOf, SvcError } from "../errors.ts";

/** One thing to do, which may be done already. */
export interface Step {
  /** What it does, with its place. */
  readonly what: string;
  isDone(): Promise<boolean>;
  do(): Promise<void>;
}

/**
 * Does the steps that are not done, in their order; `tell` hears of each. A dry run only tells.
 *
 * @throws {SvcError} `unavailable`, with the step that failed; those before it stay done.
 */
export async function runSteps(
  steps: readonly Step[],
  isDry: boolean,
  tell: (line: string) => void,
): Promise<void> {
  for (const step of steps) {
    try {
      if (await step.isDone()) continue;
      tell(isDry ? `would ${step.what}` : step.what);
      if (!isDry) await step.do();
    } catch (error) {
      if (isDry) continue; // What it looks at may be what an earlier step makes.
      throw new SvcError("unavailable", `cannot ${step.what}: ${reasonOf(error)}`, {
        cause: error,
      });
    }
  }
}

function reasonOf(error: unknown): string {
  const mend = "mend that and run the same again: what is done stays done";
  return `${messageOf(error).split("\n", 1)[0]}: ${mend}`;
}
