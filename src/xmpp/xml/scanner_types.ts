/**
 * An element as `StreamScanner` (stream_scanner.ts) reports it to its owner; one object per stream,
 * reused for every element. Offsets are into `buffer` and are valid until the callback returns.
 */
export interface ScannedElement {
  /** The bytes that hold the whole element; it lies at [`start`, `end`). */
  readonly buffer: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** End of the root's name in its start tag, where attributes begin. */
  readonly nameEnd: number;
  /** End of the root's start tag, after its `>` (or after `/>`). */
  readonly startTagEnd: number;
  /** Local name of the root. */
  readonly name: string;
  /** Namespace of the root, resolved through the element and the stream header. */
  readonly namespace: string;
  /** True when the root is written `<name …/>`. */
  readonly isEmpty: boolean;
  /** Number of attributes on the root, namespace declarations included. */
  readonly attributeCount: number;
  /**
   * Value of an attribute of the root, references expanded; undefined when absent. `name` is ASCII and
   * as written: `xml:lang` finds the attribute of that name.
   */
  attribute(name: string): string | undefined;
  /** Value of `xml:lang` on the root. */
  readonly lang: string | undefined;

  /** Prefix that the root is written with; empty without one. */
  readonly prefix: string;
  /** Default namespace in force around the element: the stream's content namespace, else empty. */
  readonly outerNamespace: string;
  /** Prefixes that the element uses and that only the stream header declares; mostly none. */
  readonly inheritedPrefixes: readonly NamespaceBinding[];
  /**
   * True when the element names the content namespace below its root in a way that would not follow it
   * onto a stream of another content namespace. Its bytes then cannot be used as they are.
   */
  readonly namesContentNamespace: boolean;

  /** Index of the root's unprefixed attribute `name`, or -1; an index is valid below `attributeCount`. */
  attributeIndex(name: string): number;
  /** Name as it is written, prefix and colon included. */
  attributeName(index: number): string;
  /** Value with references expanded and white space normalised. */
  attributeValue(index: number): string;
  /** Position of the attribute's name, where the attribute begins. */
  attributeStart(index: number): number;
  /** Ends of the value, without the quotes; the closing quote stands at `valueEnd`. */
  valueStart(index: number): number;
  valueEnd(index: number): number;
}

/** A prefix and the namespace it is bound to. */
export interface NamespaceBinding {
  readonly prefix: string;
  readonly namespace: string;
}

/** The `<stream:stream …>` start tag (RFC 6120 §4.7), or `<open/>` for RFC 7395. */
export interface StreamHeader {
  /** Local name and namespace of the root. */
  readonly name: string;
  readonly namespace: string;
  /** The default namespace it declares (the content namespace). */
  readonly contentNamespace: string;
  readonly to: string | undefined;
  readonly from: string | undefined;
  readonly id: string | undefined;
  readonly version: string | undefined;
  readonly lang: string | undefined;
  /** Prefixes it declares, `xmlns:p='…'`, in the order of the header. */
  readonly prefixes: readonly NamespaceBinding[];
}

/** Bounds on the memory that a peer can occupy in the scanner; all are checked before any allocation. */
export interface ScannerLimits {
  /** Bytes of one top-level element or stream header. @default 262144 */
  readonly maxStanzaBytes: number;
  /** Depth of nesting below the stream, the stanza itself being 1. @default 64 */
  readonly maxDepth: number;
  /** Attributes on one element, namespace declarations included. @default 64 */
  readonly maxAttributes: number;
}

/** Callbacks of a scanner. */
export interface StreamScannerEvents {
  streamOpened(header: StreamHeader): void;
  /** A whole child of the stream: a stanza or a nonza. */
  element(element: ScannedElement): void;
  streamClosed(): void;
}

/**
 * Reason why a scanner failed: the RFC 6120 §4.9.3 condition to send. Thrown by `push`, after which the
 * scanner accepts nothing more.
 */
export type ScanFailureCondition =
  | "not-well-formed"
  | "restricted-xml"
  | "policy-violation"
  | "bad-namespace-prefix"
  | "unsupported-encoding"
  | "invalid-xml";
