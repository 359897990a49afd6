/** Reads 16 bits at `offset`. Past the end it reads zeros: check the length first. */
export function getU16(bytes: Uint8Array, offset: number): number {
  return (bytes[offset] << 8) | bytes[offset + 1];
}

/** Reads 32 bits at `offset` as 0 to 2^32 - 1. */
export function getU32(bytes: Uint8Array, offset: number): number {
  return (
    ((bytes[offset] << 24) | (bytes[offset + 1] << 16) | (bytes[offset + 2] << 8) |
      bytes[offset + 3]) >>> 0
  );
}

/** Writes the low 16 bits of `value` at `offset`. */
export function setU16(bytes: Uint8Array, offset: number, value: number): void {
  bytes[offset] = value >>> 8;
  bytes[offset + 1] = value;
}

/** Writes the low 32 bits of `value` at `offset`. */
export function setU32(bytes: Uint8Array, offset: number, value: number): void {
  bytes[offset] = value >>> 24;
  bytes[offset + 1] = value >>> 16;
  bytes[offset + 2] = value >>> 8;
  bytes[offset + 3] = value;
}
