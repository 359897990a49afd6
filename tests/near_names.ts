/**
 * Names that the patterns of a list are about, and names near to them: what two readers of the list can
 * differ over. @module
 */

const MARKS = /^(?:@@)?(?:\|\|?|(?:https?)?:\/\/|\/\/)?|[\^|/*]*$/g;
/** A line about a whole name or an address, which is no pattern: with a mark behind it or without. */
const WHOLE = /^(?:@@)?(?:\|\|[\w.-]*\w(?:\^\|?)?|\w[\w.-]*|[\d.*|:/]+)$|^[!#[]|^\s*$/;
const MODIFIERS = /\$/;
/** A host's name; addresses are none, and what begins as one is the other reader's own. */
const NAME =
  /^(?=.{1,250}$)(?!(?:www\.|x)?(?:\d+\.){2})(?:[a-z0-9](?:[\w-]{0,61}[a-z0-9])?(?:\.|$))+(?<=[a-z])$/;

/** The names of each line that is a pattern without modifiers; the same names for the same lines, in order. */
export function nearNames(lines: readonly string[]): string[] {
  const names = new Set<string>();
  for (const line of lines) {
    if (WHOLE.test(line) || MODIFIERS.test(line)) continue;
    const bare = line.toLowerCase().replaceAll(MARKS, "");
    for (const text of ["", "x", "1-a.b"]) {
      const filled = bare.replaceAll("*", text);
      for (const before of ["", "www.", "x"]) {
        for (const behind of ["", "com", ".net"]) {
          const name = before + filled + behind;
          if (NAME.test(name)) names.add(name);
        }
      }
    }
  }
  return [...names];
}
