const SEMVER = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

/** Negative, 0 or positive, as `a` is older than `b`, or not; `null` for what is no version. */
export function compareVersions(a: string, b: string): number | null {
  const [left, right] = [SEMVER.exec(a), SEMVER.exec(b)];
  if (left === null || right === null) return null;
  for (let i = 1; i <= 3; i++) {
    if (left[i] !== right[i]) return Number(left[i]) - Number(right[i]);
  }
  return comparePrereleases(left[4], right[4]);
}

/** Semantic Versioning 2.0.0 §11: field by field; numbers first, and a release after all of its. */
function comparePrereleases(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  const [left, right] = [a.split("."), b.split(".")];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [one, other] = [left[i], right[i]];
    if (one === other) continue;
    const [isNumber, isOtherNumber] = [/^\d+$/.test(one), /^\d+$/.test(other)];
    if (isNumber && isOtherNumber) return Number(one) - Number(other);
    if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
    return one < other ? -1 : 1;
  }
  return left.length - right.length;
}
