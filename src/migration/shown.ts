/** Texts of others in findings are cut here. */
const SHOWN_CHARACTERS = 100;

/** Returns a text of others for a message: quoted, and cut when it is long. */
export function shown(text: string): string {
  return JSON.stringify(
    text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text,
  );
}

/** Returns the length of a text in UTF-8. */
export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
