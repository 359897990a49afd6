import type { Config } from "../config/mod.ts";

/**
 * What the configuration asks for and this release does not do yet: one text a key. Said at every
 * start, so that nobody counts on it.
 */
export function notBuilt(config: Config): string[] {
  const { recursion, cluster } = config;
  const asked: [string, boolean][] = [
    ["recursion", recursion.enabled],
    ["cluster", cluster !== null],
  ];
  return asked.filter(([, wanted]) => wanted).map(([key]) => key);
}
