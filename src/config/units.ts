const DURATION_UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;
const SIZE_UNITS_BYTES = { GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10, B: 1 } as const;

/** Milliseconds of `"500ms"`, `"10s"`, `"5m"`, `"24h"` or `"7d"`, or `null` for anything else. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  if (match === null) return null;
  return Number(match[1]) * DURATION_UNITS_MS[match[2] as keyof typeof DURATION_UNITS_MS];
}

/** Bytes of `"512B"`, `"64KiB"`, `"32MiB"` or `"1GiB"`, or `null` for anything else. */
export function parseSize(text: string): number | null {
  const match = /^(\d{1,12})(B|KiB|MiB|GiB)$/.exec(text);
  if (match === null) return null;
  return Number(match[1]) * SIZE_UNITS_BYTES[match[2] as keyof typeof SIZE_UNITS_BYTES];
}

/** The shortest form that `parseDuration` reads back. */
export function formatDuration(durationMs: number): string {
  return format(durationMs, DURATION_UNITS_MS, "s");
}

/** The shortest form that `parseSize` reads back. */
export function formatSize(sizeBytes: number): string {
  return format(sizeBytes, SIZE_UNITS_BYTES, "B");
}

/** Writes in the largest unit that leaves a whole number. */
function format(value: number, units: Readonly<Record<string, number>>, zeroUnit: string): string {
  if (value === 0) return `0${zeroUnit}`;
  for (const [unit, factor] of Object.entries(units)) {
    if (value % factor === 0) return `${value / factor}${unit}`;
  }
  return String(value);
}
