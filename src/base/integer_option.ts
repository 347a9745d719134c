/** Allowed values of an integer option, both ends included. */
export interface IntegerRange {
  readonly min: number;
  /** @default 2^53 - 1 */
  readonly max?: number;
}

/** Allowed values of an integer option, and its default. */
export interface IntegerOption extends IntegerRange {
  readonly byDefault: number;
}

/**
 * Returns `value`.
 * @throws RangeError when it is not an integer in the range
 */
export function integerIn(
  name: string,
  value: number,
  { min, max = Number.MAX_SAFE_INTEGER }: IntegerRange,
): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  const allowed = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw new RangeError(`Cannot set ${name} to ${value}: it must be an integer ${allowed}`);
}

/**
 * Fills in defaults. What is in `values` and not in `declared` is left out.
 * @throws RangeError for a value that is not an integer in its range
 */
export function resolveIntegers<Name extends string>(
  declared: Readonly<Record<Name, IntegerOption>>,
  values: Readonly<Partial<Record<Name, number>>>,
): Readonly<Record<Name, number>> {
  const resolved: Partial<Record<Name, number>> = {};
  for (const name of Object.keys(declared) as Name[]) {
    const option = declared[name];
    resolved[name] = integerIn(name, values[name] ?? option.byDefault, option);
  }
  return Object.freeze(resolved as Record<Name, number>); // the loop has set each of them
}
