/** Kinds of characters, each with the number of characters that somebody who guesses has to try. */
const KINDS: readonly (readonly [RegExp, number])[] = [
  [/[a-z]/, 26],
  [/[A-Z]/, 26],
  [/[0-9]/, 10],
  [/[\x20-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]/, 33],
  [/[^\x20-\x7e]/, 128],
];

/**
 * Returns the bits of a password of that length, if each character were drawn at random from the
 * kinds of characters that it has. Words that are in a dictionary have far fewer.
 */
export function passwordBits(password: string): number {
  let characters = 0;
  for (const [pattern, count] of KINDS) if (pattern.test(password)) characters += count;
  return characters === 0 ? 0 : [...password].length * Math.log2(characters);
}
