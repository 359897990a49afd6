/** Longest key that is worth a guess; the service's own are under thirty characters. */
const GUESSED_LENGTH_MAX = 64;
/** Most slips of the pen that still mean the known word. */
const DISTANCE_MAX = 2;

/** The word of `known` that `word` was probably meant to be, or `null` if none is near. */
export function suggest(word: string, known: Iterable<string>): string | null {
  if (word.length > GUESSED_LENGTH_MAX) return null;
  let best: string | null = null;
  let bestDistance = DISTANCE_MAX + 1;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate);
    // Two slips make any short word of any other, so at least half of it must be right.
    if (distance >= bestDistance || 2 * distance >= Math.max(candidate.length, 2)) continue;
    [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`. */
export function editDistance(a: string, b: string): number {
  let [before, previous] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(row[j - 1] + 1, previous[j] + 1, previous[j - 1] + change);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, previous] = [previous, row];
  }
  return previous[b.length];
}
