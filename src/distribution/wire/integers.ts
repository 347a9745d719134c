const TWO_32 = 4294967296;

/** Reads a big-endian `u32`. */
export function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>>
    0;
}

export function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

export function readU16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

export function writeU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8;
  bytes[at + 1] = value;
}

/**
 * Reads a big-endian `u64` that the protocol keeps below 2^53, as two words without BigInt;
 * undefined when it is larger.
 */
export function readU53(bytes: Uint8Array, at: number): number | undefined {
  const high = readU32(bytes, at);
  return high > 0x1fffff ? undefined : high * TWO_32 + readU32(bytes, at + 4);
}

/**
 * Checks an integer for a frame: a value that the reader would refuse must not be written.
 * @throws RangeError
 */
export function checkInteger(value: number, most: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= most) return;
  throw new RangeError(`Cannot encode ${value}: it must be a whole number from 0 to ${most}`);
}

/** Writes an integer in [0, 2^53) as a big-endian `u64`. */
export function writeU53(bytes: Uint8Array, at: number, value: number): void {
  const high = Math.floor(value / TWO_32);
  writeU32(bytes, at, high);
  writeU32(bytes, at + 4, value - high * TWO_32);
}
