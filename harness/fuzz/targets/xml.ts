import { frameStanza, StreamFailure, StreamScanner } from "../../../src/xmpp/mod.ts";
import type { ScannedElement } from "../../../src/xmpp/mod.ts";
import { readSeeds } from "../corpus.ts";
import { bytesOf } from "../fuzz_target.ts";
import type { BatchFinding, FuzzTarget } from "../fuzz_target.ts";
import { ReferenceParsers } from "../reference_parsers.ts";
import { referenceVerdict } from "../saxes_reference.ts";
import type { ReferenceElement } from "../saxes_reference.ts";
import { stampedStanza } from "../stamped_stanza.ts";
import { joinBytes } from "../../net/join_bytes.ts";

/**
 * Refusals of our scanner that the reference need not share: RFC 6120 demands them, or they are
 * limits.
 */
const STRICTER: ReadonlySet<string> = new Set(["policy-violation", "unsupported-encoding"]);

/** Documents held for the references at most; an input that makes more of them is cut short. */
const MAX_DOCUMENTS = 10_000;

const ENCODER = new TextEncoder();
const DOCUMENT_START = ENCODER.encode(
  "<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams'>",
);
const DOCUMENT_END = ENCODER.encode("</s:stream>");

/** Something that goes out to clients, and the input that it came from. */
interface Document {
  readonly input: Uint8Array;
  readonly bytes: Uint8Array;
}

/**
 * The scanner against `saxes`, a parser that shares no code with it: both must agree on what is
 * well-formed, and on the name, namespace and attributes of every stanza's root. What goes out must say
 * what came in, and expat and libxml2 must read it, as must they all that the scanner accepts.
 */
class XmlTarget implements FuzzTarget {
  readonly name = "xml";
  #documents: Document[] = [];
  #parsers: ReferenceParsers | undefined;

  readonly tokens = bytesOf([
    ..."<>/='\"&;!?[]- \n\0é😀:",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<?x ?>",
    "<!DOCTYPE x>",
    "&amp;",
    "&#0;",
    "&#x1F600;",
    "&#xD800;",
    "&lol;",
    " xmlns='a'",
    " xmlns:p='b'",
    " xmlns:p=''",
    " xml:lang='en'",
    "<p:a",
    "</a>",
    "<a/>",
    "<?xml version='1.0'?>",
    "\ufeff",
    "\u0221",
    "漢",
    "<xml:a/>",
    " xml:id='b'",
    " xmlns='a}b'",
    " xmlns='urn:a#b'",
    " xmlns:p='jabber:client'",
    " xmlns='jabber:client'",
    " xmlns='jabber:component:accept'",
    " xmlns=''",
    " p:a='c'",
    "<p:b xmlns:p='jabber:client'>",
    "</p:b>",
  ]);

  seeds(): readonly Uint8Array[] {
    return readSeeds("xml");
  }

  run(input: Uint8Array, chance: (below: number) => number): void {
    const scanned = scan(input, chance);
    if (scanned.failure === undefined) this.#keep(input, input);
    for (const stanza of scanned.stanzas) {
      // Twice, as two senders may say the same.
      this.#keep(input, joinBytes(DOCUMENT_START, stanza, stanza, DOCUMENT_END));
      this.#keep(input, frameStanza(stanza));
    }
    const reference = referenceVerdict(input);
    if (reference === undefined) return; // the two may differ there
    if (reference.isAccepted !== (scanned.failure === undefined)) {
      if (reference.isAccepted && STRICTER.has(scanned.failure ?? "")) return;
      throw new Error(
        `the scanner says ${scanned.failure ?? "well-formed"}, saxes says ` +
          (reference.isAccepted ? "well-formed" : reference.reason),
      );
    }
    if (!reference.isAccepted) return;
    const ours = JSON.stringify(scanned.elements);
    const theirs = JSON.stringify(reference.elements.map(sorted));
    if (ours !== theirs) throw new Error(`the scanner found ${ours}, saxes ${theirs}`);
  }

  async settle(): Promise<BatchFinding | undefined> {
    const documents = this.#documents;
    this.#documents = [];
    this.#parsers ??= await ReferenceParsers.start();
    const [first] = await this.#parsers.refusals(documents.map(({ bytes }) => bytes));
    if (first === undefined) return undefined;
    const { input, bytes } = documents[first.index]!;
    return {
      input,
      problem: `${first.reason}: ${JSON.stringify(new TextDecoder().decode(bytes))}`,
    };
  }

  async close(): Promise<void> {
    await this.#parsers?.[Symbol.asyncDispose]();
    this.#parsers = undefined;
  }

  #keep(input: Uint8Array, bytes: Uint8Array): void {
    if (this.#documents.length < MAX_DOCUMENTS) this.#documents.push({ input, bytes });
  }
}

export const XML_TARGET: FuzzTarget = new XmlTarget();

interface Scanned {
  readonly elements: readonly ReferenceElement[];
  /** Stanzas that would go out. */
  readonly stanzas: readonly Uint8Array[];
  /** Why the stream was refused, or `unfinished`. */
  readonly failure: string | undefined;
}

/** Scans `input` in chunks cut at random. */
function scan(input: Uint8Array, chance: (below: number) => number): Scanned {
  const elements: ReferenceElement[] = [];
  const stanzas: Uint8Array[] = [];
  let isClosed = false;
  const scanner = new StreamScanner({
    streamOpened() {},
    element(element) {
      elements.push(sorted(describe(element)));
      const stanza = stampedStanza(element);
      if (stanza !== undefined) stanzas.push(stanza);
    },
    streamClosed() {
      isClosed = true;
    },
  });
  try {
    for (let at = 0; at < input.length;) {
      const end = Math.min(input.length, at + 1 + chance(chance(2) === 0 ? 4 : input.length + 1));
      scanner.push(input.subarray(at, end));
      at = end;
    }
  } catch (thrown) {
    if (!(thrown instanceof StreamFailure)) throw thrown;
    return { elements, stanzas, failure: thrown.condition };
  }
  const isWhole = isClosed && scanner.pendingBytes === 0;
  return { elements, stanzas, failure: isWhole ? undefined : "unfinished" };
}

function describe(element: ScannedElement): ReferenceElement {
  return {
    name: element.name,
    prefix: element.prefix,
    namespace: element.namespace,
    attributes: Array.from(
      { length: element.attributeCount },
      (_, i) => [element.attributeName(i), element.attributeValue(i)] as const,
    ),
  };
}

/** The reference keeps attributes in an object, which puts names that are numbers first. */
function sorted(element: ReferenceElement): ReferenceElement {
  const attributes = [...element.attributes].sort(([one], [other]) => one < other ? -1 : 1);
  return { ...element, attributes };
}
