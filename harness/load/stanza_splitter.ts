/**
 * Finds where each element of a stream ends, by counting tags: enough for what a server writes to the
 * clients of a load, where no attribute holds a `>`, and cheap.
 */
export class StanzaSplitter {
  readonly #element: (text: string) => void;
  #text = "";
  #scanned = 0;
  #depth = 0;

  constructor(element: (text: string) => void) {
    this.#element = element;
  }

  push(chunk: string): void {
    const text = this.#text + chunk;
    let start = 0;
    let at = this.#scanned;
    for (;;) {
      const open = text.indexOf("<", at);
      const close = open < 0 ? -1 : text.indexOf(">", open);
      if (close < 0) {
        at = open < 0 ? text.length : open;
        break;
      }
      if (this.#depth === 0) start = open;
      at = close + 1;
      if (text.charAt(open + 1) === "/") this.#depth--;
      else if (text.charAt(close - 1) !== "/") this.#depth++;
      if (this.#depth > 0) continue;
      this.#depth = 0; // the end of the stream itself is handed on as an element too
      this.#element(text.slice(start, at));
      start = at;
    }
    this.#text = text.slice(start);
    this.#scanned = at - start;
  }
}
