/**
 * Nothing of what a service says is anything that a terminal would act on, or that would change how
 * the rest of the line is read.
 */
export function harmless(line: string): string {
  return line.replace(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, "�");
}
