import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";

/**
 * Scripts that write words without spaces between them, and Hangul, which appends endings to words.
 * They are searched by pairs of neighbouring characters.
 */
const DENSE =
  "[\\p{scx=Han}\\p{scx=Hiragana}\\p{scx=Katakana}\\p{scx=Hangul}\\p{sc=Thai}\\p{sc=Lao}" +
  "\\p{sc=Khmer}\\p{sc=Myanmar}]";
const PARTS = new RegExp(
  `(?<dense>[[\\p{L}\\p{N}\\p{M}]&&${DENSE}]+)|[[\\p{L}\\p{N}\\p{M}]--${DENSE}]+`,
  "gv",
);
const PLAIN = /^[a-z0-9]{1,60}$/;
/** Bytes of a word that is kept in hexadecimal digits. MySQL leaves out what is longer than 84 characters. */
const MAX_HEX_BYTES = 40;
/** Hexadecimal digits of the hash of a longer word, and of an archive's key. */
const [HASH_DIGITS, KEY_DIGITS] = [32, 16];
/**
 * Most words of a message, and bytes that they take with a space between them: an index has as many
 * entries. PostgreSQL takes 1 048 575 bytes.
 */
const [MAX_WORDS, MAX_BYTES] = [4_096, 65_536];

/**
 * Returns the words of a message, each once, as search indexes have them. They consist of at least
 * three letters and digits of ASCII, so that no engine leaves one out as too short or too common, cuts
 * it, or takes a part of it for an operator. The case of letters does not matter. A message with very
 * many words has the first ones alone.
 */
export function wordsOf(text: string): readonly string[] {
  return wordsIn(text, charactersAndPairsOf);
}

/** Returns the words that a message has to have, each once, to be found by a search. */
export function searchedWordsOf(text: string): readonly string[] {
  return wordsIn(text, (part) => {
    const characters = [...part];
    return characters.length === 1 ? characters : pairsOf(characters);
  });
}

/**
 * Returns the word that all messages of an archive have, and almost no others. A search for it besides
 * costs as much as the archive has messages with the other words, and not as much as all archives have.
 */
export function wordOfArchive(key: Uint8Array): string {
  return `xa${Buffer.from(key).toString("hex", 0, KEY_DIGITS / 2)}`;
}

function wordsIn(
  text: string,
  ofDense: (part: string) => Iterable<string>,
): readonly string[] {
  const words = new Set<string>();
  let bytes = 0;
  for (const { 0: part, groups } of normal(text).matchAll(PARTS)) {
    for (const each of groups?.["dense"] === undefined ? [part] : ofDense(part)) {
      const word = encoded(each);
      if (words.has(word)) continue;
      bytes += word.length + 1;
      if (words.size === MAX_WORDS || bytes > MAX_BYTES) return [...words];
      words.add(word);
    }
  }
  return [...words];
}

/** Returns a text in small letters, with one form for characters that mean the same. */
function normal(text: string): string {
  return text.toWellFormed().normalize("NFKC").toLowerCase().normalize("NFC");
}

/** Gives each character of a text, and behind it the pair that it ends. */
function* charactersAndPairsOf(text: string): Generator<string> {
  let last = "";
  for (const character of text) {
    yield character;
    if (last !== "") yield `${last}${character}`;
    last = character;
  }
}

function pairsOf(characters: readonly string[]): readonly string[] {
  return characters.slice(1).map((character, i) => `${characters[i]}${character}`);
}

/** The second letter tells the kinds of words apart. */
function encoded(word: string): string {
  if (PLAIN.test(word)) return `xx${word}`;
  const bytes = Buffer.from(word);
  if (bytes.length <= MAX_HEX_BYTES) return `xu${bytes.toString("hex")}`;
  return `xh${createHash("sha256").update(bytes).digest("hex").slice(0, HASH_DIGITS)}`;
}
