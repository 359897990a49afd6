import { beginRun, type Begun } from "./begin_run.ts";

/** `svc run`; returns the exit code once the service has stopped. */
export async function run(args: string[]): Promise<number> {
  const begun = await beginRun(args);
  return typeof begun === "number" ? begun : await serve(begun);
}

/** Runs what has begun; returns the exit code once it has stopped. */
export async function serve({ config, legacy, missingFile }: Begun): Promise<number> {
  const { runService } = await import("../node/mod.ts");
  await runService(config, { legacy, missingFile });
  return 0;
}
