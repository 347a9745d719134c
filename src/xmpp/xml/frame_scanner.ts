import { failTooLarge } from "./assembly_buffer.ts";
import { ElementScanner } from "./element_scanner.ts";
import { NamespaceScope } from "./namespace_scope.ts";
import { failScan } from "./scan_failure.ts";
import { ScannedElementView } from "./scanned_element_view.ts";
import { resolveScannerLimits } from "./scanner_limits.ts";
import type { ScannedElement, ScannerLimits } from "./scanner_types.ts";
import { CHAR_CLASS, SPACE } from "./xml_chars.ts";

/**
 * Reads WebSocket messages of RFC 7395 §3.3: each is one whole element that declares its own namespaces.
 * One scanner serves a connection; its element is valid until its next `scan`.
 */
export class FrameScanner {
  readonly #limits: ScannerLimits;
  readonly #scope = new NamespaceScope();
  readonly #view = new ScannedElementView();
  readonly #element: ElementScanner;

  constructor(limits: Partial<ScannerLimits> = {}) {
    this.#limits = resolveScannerLimits(limits);
    this.#element = new ElementScanner(this.#limits, this.#scope, this.#view);
  }

  /** Returns the element in `message`. @throws StreamFailure */
  scan(message: Uint8Array): ScannedElement {
    if (message.length > this.#limits.maxStanzaBytes) failTooLarge(this.#limits.maxStanzaBytes);
    if (message[0] !== 0x3c) failScan("not-well-formed", "a message that does not begin with <");
    if (message[1] === 0x21 || message[1] === 0x3f) {
      failScan("restricted-xml", "a message that does not begin with an element");
    }
    this.#element.reset();
    this.#view.release();
    const end = this.#element.scan(message, 0, message.length);
    if (end === -1) failScan("not-well-formed", "a message that ends inside its element");
    for (let p = end; p < message.length; p++) {
      if ((CHAR_CLASS[message[p]!]! & SPACE) === 0) {
        failScan("not-well-formed", "a message of more than one element");
      }
    }
    this.#view.place(message, 0, end);
    return this.#view;
  }
}

/** Returns the one element of an RFC 7395 message, for callers that keep no `FrameScanner`. */
export function scanFrame(
  message: Uint8Array,
  limits: Partial<ScannerLimits> = {},
): ScannedElement {
  return new FrameScanner(limits).scan(message);
}
