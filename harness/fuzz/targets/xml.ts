import { StreamFailure, StreamScanner } from "../../../src/xmpp/mod.ts";
import type { ScannedElement } from "../../../src/xmpp/mod.ts";
import { readSeeds } from "../corpus.ts";
import { bytesOf } from "../fuzz_target.ts";
import type { FuzzTarget } from "../fuzz_target.ts";
import { referenceVerdict } from "../saxes_reference.ts";
import type { ReferenceElement } from "../saxes_reference.ts";

/** What ours may refuse though the reference takes it: RFC 6120 asks for it, or it is a limit. */
const STRICTER: ReadonlySet<string> = new Set(["policy-violation", "unsupported-encoding"]);

/**
 * The scanner against `saxes`, a parser that shares no code with it: both must agree on what is
 * well-formed, and on the name, namespace and attributes of every stanza's root.
 */
export const XML_TARGET: FuzzTarget = {
  name: "xml",
  tokens: bytesOf([
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
  ]),
  seeds: () => readSeeds("xml"),
  run(input, chance) {
    const scanned = scan(input, chance);
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
  },
};

interface Scanned {
  readonly elements: readonly ReferenceElement[];
  /** Why the stream was refused, or `unfinished`. */
  readonly failure: string | undefined;
}

/** Scans `input` in chunks cut at random. */
function scan(input: Uint8Array, chance: (below: number) => number): Scanned {
  const elements: ReferenceElement[] = [];
  let isClosed = false;
  const scanner = new StreamScanner({
    streamOpened() {},
    element: (element) => void elements.push(sorted(describe(element))),
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
    return { elements, failure: thrown.condition };
  }
  const isWhole = isClosed && scanner.pendingBytes === 0;
  return { elements, failure: isWhole ? undefined : "unfinished" };
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
