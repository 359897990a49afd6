/** A number, as it is shown, with the word for one or for many. */
export function plural(count: number, one: string, many: string, shown = String(count)): string {
  return `${shown} ${count === 1 ? one : many}`;
}
