/** What a run of the simulations may be told: `scripts/test --only-tests tests/sim -- --seeds=N`. */

/** The number given as `--name=N`, or `otherwise`. */
export function optionOf(name: string, otherwise: number): number {
  const prefix = `--${name}=`;
  const given = Deno.args.find((arg) => arg.startsWith(prefix))?.slice(prefix.length);
  if (given === undefined) return otherwise;
  if (!/^\d{1,9}$/.test(given)) throw new Error(`--${name}: ${given} is no number`);
  return Number(given);
}
