/** Names and contents that are commands, ends or escapes to some engine. */
export const AWKWARD_TEXTS: readonly string[] = [
  "'; DROP TABLE users; --",
  'Robert"); DELETE FROM users',
  "%_\\",
  "\\' OR 1=1",
  "$1 ? :name @p0 {}",
  "a\0b",
  "\u{1f600}\u{10ffff}",
  "n\u0303 \u00f1",
  "",
];

/** An element of more than 1 MB in UTF-8, with characters of two and four bytes. */
export const MEGABYTE_XML = `<x xmlns='urn:example'>${"\u{1f600}é".repeat(180_000)}</x>`;
