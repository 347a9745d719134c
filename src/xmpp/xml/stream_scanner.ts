import { textOf } from "./ascii_interner.ts";
import { AssemblyBuffer, failTooLarge } from "./assembly_buffer.ts";
import { ElementScanner, scanStartTag } from "./element_scanner.ts";
import { NamespaceScope } from "./namespace_scope.ts";
import { failScan } from "./scan_failure.ts";
import { ScannedElementView } from "./scanned_element_view.ts";
import { resolveScannerLimits } from "./scanner_limits.ts";
import type { ScannerLimits, StreamHeader, StreamScannerEvents } from "./scanner_types.ts";
import { readStreamHeader, refuseLongHeader } from "./stream_header.ts";
import { TagEndFinder } from "./tag_end_finder.ts";
import { CHAR_CLASS, SPACE, utf8Step } from "./xml_chars.ts";
import { skipDeclaration } from "./xml_declaration.ts";

const LT = 0x3c;
const GT = 0x3e;
const SLASH = 0x2f;
const BANG = 0x21;
const QUESTION = 0x3f;

const NOTHING = new Uint8Array(0);
/** Bytes moved into the assembly buffer at a time, because an element's end is mostly near. */
const ASSEMBLY_STEP_BYTES = 4096;

/** Kind of the piece that is being read at the top level of a stream. */
type Piece = "unknown" | "declaration" | "header" | "element" | "stream-end";

/**
 * Finds the header, the top-level elements and the end of one XML stream in the bytes as they come
 * (RFC 6120 §4.2), and checks everything on the way: well-formedness, namespaces, the restrictions of
 * §11.1 and the limits. No tree and no copy is made of an element that lies in one chunk; one that does
 * not is put together in a buffer that never exceeds `maxStanzaBytes`.
 *
 * ```
 * start ──declaration, header──▶ open ──elements──▶ open ──end──▶ closed
 *   ▲                              │ reset (TLS or SASL done)        │
 *   └──────────────────────────────┴─────────────────────────────────┘    failure ──▶ failed
 * ```
 */
export class StreamScanner {
  readonly #events: StreamScannerEvents;
  readonly #limits: ScannerLimits;
  readonly #scope = new NamespaceScope();
  readonly #view = new ScannedElementView();
  readonly #element: ElementScanner;
  readonly #assembly: AssemblyBuffer;
  readonly #tagEnd = new TagEndFinder();
  #state: "start" | "open" | "closed" | "failed" = "start";
  #piece: Piece = "unknown";
  /** True until the first byte of the stream, the only place for an XML declaration. */
  #isAtFirstByte = true;
  #headerName = "";
  #header: StreamHeader | undefined;
  #isStopped = false;
  #remainder: Uint8Array = NOTHING;

  constructor(events: StreamScannerEvents, limits: Partial<ScannerLimits> = {}) {
    this.#events = events;
    this.#limits = resolveScannerLimits(limits);
    this.#element = new ElementScanner(this.#limits, this.#scope, this.#view);
    this.#assembly = new AssemblyBuffer(this.#limits.maxStanzaBytes);
  }

  /** Bytes after the element whose callback called `stop`; not scanned yet. */
  get remainder(): Uint8Array {
    return this.#remainder;
  }

  /** Bytes of an unfinished element that are held. */
  get pendingBytes(): number {
    return this.#assembly.length;
  }

  /** Stops after the current element: the following bytes become `remainder`. For use in a callback. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Undoes `stop` and scans `remainder`; elements are reported within this call. */
  resume(): void {
    this.#isStopped = false;
    const rest = this.#remainder;
    this.#remainder = NOTHING;
    if (rest.length > 0) this.push(rest);
  }

  /**
   * Awaits a new stream header (RFC 6120 §4.3.3), as after TLS or SASL. When called in a callback, the
   * following bytes of the chunk belong to the new stream. After `stop` the remainder is dropped.
   */
  reset(): void {
    this.#state = "start";
    this.#piece = "unknown";
    this.#isAtFirstByte = true;
    this.#isStopped = false;
    this.#remainder = NOTHING;
    this.#assembly.clear();
    this.#tagEnd.reset();
    this.#scope.reset();
    this.#element.reset();
  }

  /**
   * Scans `chunk`, and calls the callbacks for each completed piece. While stopped, it adds `chunk` to
   * `remainder`: an owner who stops also pauses its connection.
   * @throws StreamFailure after which only `reset` is of use
   */
  push(chunk: Uint8Array): void {
    if (this.#isStopped) {
      this.#remainder = concat(this.#remainder, chunk);
      return;
    }
    if (this.#state === "failed") failScan("not-well-formed", "bytes after a failure");
    try {
      this.#scan(chunk);
    } catch (thrown) {
      this.#state = "failed";
      throw thrown;
    }
  }

  #scan(chunk: Uint8Array): void {
    let p = this.#assembly.length > 0 ? this.#assemble(chunk) : 0;
    while (p < chunk.length) {
      if (this.#isStopped) {
        this.#remainder = chunk.subarray(p);
        return;
      }
      if (this.#piece === "unknown") {
        const before = p;
        while (p < chunk.length && (CHAR_CLASS[chunk[p]!]! & SPACE) !== 0) p++;
        if (p > before) this.#isAtFirstByte = false;
        if (p >= chunk.length) return;
        if (chunk[p] !== LT) this.#refuseText(chunk, p);
      }
      const limit = Math.min(chunk.length, p + this.#limits.maxStanzaBytes);
      const after = this.#scanPiece(chunk, p, limit);
      if (after === -1) {
        if (limit < chunk.length) failTooLarge(this.#limits.maxStanzaBytes);
        this.#assembly.append(chunk, p, limit);
        return;
      }
      this.#deliver(chunk, p, after);
      p = after;
    }
  }

  /** Continues a piece begun in an earlier chunk. Returns the position in `chunk` after it. */
  #assemble(chunk: Uint8Array): number {
    const assembly = this.#assembly;
    let taken = 0;
    while (taken < chunk.length) {
      const room = assembly.room;
      if (room === 0) failTooLarge(this.#limits.maxStanzaBytes);
      const step = Math.min(ASSEMBLY_STEP_BYTES, room, chunk.length - taken);
      assembly.append(chunk, taken, taken + step);
      taken += step;
      const after = this.#scanPiece(assembly.bytes, 0, assembly.length);
      if (after !== -1) {
        taken -= assembly.length - after;
        const bytes = assembly.bytes;
        assembly.clear();
        this.#deliver(bytes, 0, after);
        return taken;
      }
    }
    return taken;
  }

  /** Returns the position after the piece that begins at `base`, or -1 when it continues after `end`. */
  #scanPiece(bytes: Uint8Array, base: number, end: number): number {
    if (this.#piece === "unknown") {
      if (base + 1 >= end) return -1;
      this.#piece = this.#pieceOf(bytes[base + 1]!);
    }
    switch (this.#piece) {
      case "element":
        return this.#element.scan(bytes, base, end);
      case "declaration":
        return skipDeclaration(bytes, base, end);
      case "header":
        return this.#scanHeader(bytes, base, end);
      default:
        return this.#scanStreamEnd(bytes, base, end);
    }
  }

  /** Returns the kind of piece that `<` and this byte begin. */
  #pieceOf(second: number): Piece {
    if (second === BANG) failScan("restricted-xml", "a comment, DTD or section between elements");
    if (second === QUESTION) {
      if (this.#state === "start" && this.#isAtFirstByte) return "declaration";
      failScan("restricted-xml", "a processing instruction");
    }
    if (this.#state === "closed") failScan("not-well-formed", "an element after the stream's end");
    if (second === SLASH) {
      if (this.#state === "start") failScan("not-well-formed", "an end tag without an element");
      return "stream-end";
    }
    return this.#state === "start" ? "header" : "element";
  }

  #scanHeader(bytes: Uint8Array, base: number, end: number): number {
    if (this.#tagEnd.isActive && !this.#tagEnd.find(bytes, base, end)) {
      refuseLongHeader(end - base);
      return -1;
    }
    const found = scanStartTag(bytes, base + 1, end, this.#limits.maxAttributes);
    if (found === undefined) {
      refuseLongHeader(end - base);
      this.#tagEnd.begin(1);
      this.#tagEnd.find(bytes, base, end);
      return -1;
    }
    refuseLongHeader(found.after - base);
    this.#headerName = textOf(bytes, found.tag.nameStart, found.tag.nameEnd);
    this.#header = readStreamHeader(bytes, found.tag, this.#scope);
    if (found.tag.isEmpty) failScan("invalid-xml", "a stream that ends in its start tag");
    return found.after;
  }

  #scanStreamEnd(bytes: Uint8Array, base: number, end: number): number {
    if (!this.#tagEnd.isActive) this.#tagEnd.begin(1);
    if (!this.#tagEnd.find(bytes, base, end)) return -1;
    let p = base + 2;
    while (p < end && bytes[p] !== GT && (CHAR_CLASS[bytes[p]!]! & SPACE) === 0) {
      p += bytes[p]! < 0x80 ? 1 : utf8Step(bytes, p, end) || 1;
    }
    if (textOf(bytes, base + 2, p) !== this.#headerName) {
      failScan("not-well-formed", "an end tag for another element than the stream");
    }
    while (p < end && (CHAR_CLASS[bytes[p]!]! & SPACE) !== 0) p++;
    if (bytes[p] !== GT) failScan("not-well-formed", "an end tag that does not end");
    return p + 1;
  }

  /** Reports a whole piece to the owner. The scanner is ready for the next one before the callback runs. */
  #deliver(bytes: Uint8Array, start: number, end: number): void {
    const piece = this.#piece;
    this.#piece = "unknown";
    this.#isAtFirstByte = false;
    switch (piece) {
      case "element": {
        this.#view.place(bytes, start, end);
        this.#events.element(this.#view);
        this.#view.release();
        return;
      }
      case "header":
        this.#state = "open";
        this.#events.streamOpened(this.#header!);
        return;
      case "stream-end":
        this.#state = "closed";
        this.#events.streamClosed();
        return;
      default:
        return;
    }
  }

  #refuseText(bytes: Uint8Array, at: number): never {
    if (bytes[at]! >= 0x80) utf8Step(bytes, at, bytes.length);
    else if (bytes[at]! < 0x20) failScan("not-well-formed", "a control character");
    if (this.#state === "open") failScan("invalid-xml", "text between stanzas");
    failScan("not-well-formed", "text outside of the stream");
  }
}

function concat(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second;
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
