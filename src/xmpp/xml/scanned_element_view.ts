import { isText, textOf } from "./ascii_interner.ts";
import { decodeValue } from "./attribute_value.ts";
import type { NamespaceBinding, ScannedElement } from "./scanner_types.ts";
import { SPAN, type TagScanner } from "./tag_scanner.ts";

const NOTHING = new Uint8Array(0);

/**
 * The element that a scanner reports, in the same object each time. Inside, offsets count from the
 * element's first byte, because its bytes may move into an assembly buffer while it is incomplete.
 */
export class ScannedElementView implements ScannedElement {
  buffer: Uint8Array = NOTHING;
  start = 0;
  end = 0;
  name = "";
  namespace = "";
  prefix = "";
  outerNamespace = "";
  isEmpty = false;
  attributeCount = 0;
  inheritedPrefixes: readonly NamespaceBinding[] = [];
  namesContentNamespace = false;
  #nameEnd = 0;
  #startTagEnd = 0;
  #spans: Int32Array = new Int32Array(8 * SPAN);

  /** Reads the root's start tag, which ends at `tagEnd`; the element begins at `base`. */
  open(bytes: Uint8Array, base: number, tag: TagScanner, tagEnd: number): void {
    const { colon, count } = tag;
    this.name = textOf(bytes, colon === -1 ? tag.nameStart : colon + 1, tag.nameEnd);
    this.prefix = colon === -1 ? "" : textOf(bytes, tag.nameStart, colon);
    this.isEmpty = tag.isEmpty;
    this.attributeCount = count;
    this.#nameEnd = tag.nameEnd - base;
    this.#startTagEnd = tagEnd - base;
    if (this.#spans.length < count * SPAN) this.#spans = new Int32Array(count * SPAN);
    const from = tag.spans;
    const to = this.#spans;
    for (let at = 0; at < count * SPAN; at++) to[at] = from[at]! - base;
  }

  /** Sets the place of the whole element, valid until the owner's callback returns. */
  place(buffer: Uint8Array, start: number, end: number): void {
    this.buffer = buffer;
    this.start = start;
    this.end = end;
  }

  /** Releases the buffer. */
  release(): void {
    this.buffer = NOTHING;
    this.start = 0;
    this.end = 0;
  }

  get nameEnd(): number {
    return this.start + this.#nameEnd;
  }

  get startTagEnd(): number {
    return this.start + this.#startTagEnd;
  }

  get lang(): string | undefined {
    return this.attribute("xml:lang");
  }

  attribute(name: string): string | undefined {
    const index = this.attributeIndex(name);
    return index === -1 ? undefined : this.attributeValue(index);
  }

  attributeIndex(name: string): number {
    const { buffer, start } = this;
    const spans = this.#spans;
    for (let index = 0, at = 0; index < this.attributeCount; index++, at += SPAN) {
      if (isText(buffer, start + spans[at]!, start + spans[at + 1]!, name)) return index;
    }
    return -1;
  }

  attributeName(index: number): string {
    const at = index * SPAN;
    return textOf(this.buffer, this.start + this.#spans[at]!, this.start + this.#spans[at + 1]!);
  }

  attributeValue(index: number): string {
    return decodeValue(this.buffer, this.valueStart(index), this.valueEnd(index));
  }

  attributeStart(index: number): number {
    return this.start + this.#spans[index * SPAN]!;
  }

  valueStart(index: number): number {
    return this.start + this.#spans[index * SPAN + 3]!;
  }

  valueEnd(index: number): number {
    return this.start + this.#spans[index * SPAN + 4]!;
  }
}
