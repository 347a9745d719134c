import { hasLongMarkRun } from "../jid/mark_runs.ts";

/** RFC 4013 §2.1: non-ASCII spaces become spaces; characters of RFC 3454 B.1 vanish. */
const NON_ASCII_SPACE = /[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/gu;
const MAPPED_TO_NOTHING =
  /[\u00ad\u034f\u1806\u180b-\u180d\u200c\u200d\u2060\ufe00-\ufe0f\ufeff]/gu;

/**
 * Characters prohibited by RFC 4013 §2.3: controls, private use, non-characters, surrogates, and those
 * of RFC 3454 C.6 to C.9 (unfit for plain text or for canonical form, changing display, tagging).
 */
const PROHIBITED =
  /[\p{Cc}\p{Co}\p{Cs}\p{Noncharacter_Code_Point}\u06dd\u070f\u180e\u200e\u200f\u2028\u2029\u202a-\u202e\u2061-\u2063\u206a-\u206f\u2ff0-\u2ffb\u0340\u0341\ufff9-\ufffd\u{1d173}-\u{1d17a}\u{e0001}\u{e0020}-\u{e007f}]/u;

const RIGHT_TO_LEFT =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const LEFT_TO_RIGHT_LETTER =
  /(?![\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}])\p{L}/u;

/**
 * Longest accepted password, in UTF-16 units, so that hashing one stays cheap. This is not an option,
 * because it must be the same where an account is made and at every node where the user logs in.
 */
export const MAX_PASSWORD_LENGTH = 1024;

/**
 * Prepares a password or a SCRAM user name by SASLprep (RFC 4013). It is treated as a query string:
 * unassigned code points pass, so that a peer with a newer Unicode agrees with us.
 *
 * @returns undefined when it holds a prohibited character or more than `MAX_MARK_RUN` marks in a row,
 * mixes directions, is empty or too long
 */
export function tryPreparePassword(password: string): string | undefined {
  if (password.length === 0 || password.length > MAX_PASSWORD_LENGTH) return undefined;
  if (hasLongMarkRun(password)) return undefined;
  const prepared = password.replace(MAPPED_TO_NOTHING, "").replace(NON_ASCII_SPACE, " ")
    .normalize("NFKC");
  if (prepared === "" || PROHIBITED.test(prepared)) return undefined;
  return hasSoundDirection(prepared) ? prepared : undefined;
}

/**
 * Checks RFC 3454 §6: a text with right-to-left characters has no left-to-right ones, and begins and
 * ends right-to-left.
 */
function hasSoundDirection(text: string): boolean {
  if (!RIGHT_TO_LEFT.test(text)) return true;
  const first = String.fromCodePoint(text.codePointAt(0)!);
  const last = Array.from(text.slice(-2)).at(-1)!;
  return RIGHT_TO_LEFT.test(first) && RIGHT_TO_LEFT.test(last) && !LEFT_TO_RIGHT_LETTER.test(text);
}
