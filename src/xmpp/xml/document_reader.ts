import { SaxesParser, type SaxesTagNS } from "saxes";
import { CausewayError } from "../../base/mod.ts";
import { attributesOf, joinText } from "./parse_element.ts";
import { XmlElement, type XmlNode } from "./xml_element.ts";

/** Start tag of an element. */
export interface DocumentTag {
  readonly name: string;
  readonly namespace: string;
  /** Returns the value of an attribute without a namespace. */
  attribute(name: string): string | undefined;
}

/** Whether an element is looked into, kept as a tree, or left out. */
export type DocumentStep = "enter" | "build" | "skip";

/** Callbacks of a `DocumentReader`. */
export interface DocumentEvents {
  /** Decides about an element: the root, or a child of an element that was entered. */
  opened(tag: DocumentTag): DocumentStep;
  /** An element that was to be built has ended. */
  built(element: XmlElement): void;
  /** An element that was to be built exceeds the budget or another limit. It is left out. */
  tooLarge(tag: DocumentTag): void;
  /** An element that was entered has ended. */
  closed(): void;
}

/** Limits on what a document makes its reader hold. */
export interface DocumentLimits {
  /** Elements within each other, of those that are entered or built; at least 1. @default 100 */
  readonly maxDepth?: number;
  /** Attributes of an element that is entered or built; at least 1. @default 1000 */
  readonly maxAttributes?: number;
  /**
   * Characters of one tag, comment or section; at least 1. Texts of elements that are built cost their
   * budget alone. @default 4194304
   */
  readonly maxPieceLength?: number;
  /**
   * Size of the elements that are built, until `renewBudget` is called: characters of names, values
   * and texts, and 100 for each element. @default 16777216
   */
  readonly budget?: number;
}

/** Elements within each other, of those that are left out too: the parser's time grows by the square. */
const MAX_LEFT_OUT_DEPTH = 10_000;
/** Cost of an element besides its characters. */
const ELEMENT_COST = 100;
/** An empty comment: the parser hands a text over at the next markup, and holds all of it until then. */
const FLUSH = "<!---->";

interface OpenElement {
  readonly tag: SaxesTagNS;
  readonly children: XmlNode[];
}

/**
 * Reads an XML document of any length from its bytes. It holds the open elements and what is being
 * built, and nothing else. The document is UTF-8 and has no document type declaration, so that it can
 * define no entities.
 */
export class DocumentReader {
  readonly #events: DocumentEvents;
  readonly #limits: Required<DocumentLimits>;
  readonly #parser: SaxesParser<{ xmlns: true }>;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  /** Elements that are entered. */
  #entered = 0;
  /** Elements within one that is left out, itself included. */
  #skipped = 0;
  /** Elements of the tree that is being built. */
  #open: OpenElement[] = [];
  #hasRoot = false;
  /** Characters since the last event: the parser holds them. */
  #piece = 0;
  /** Characters that the parser was given. */
  #given = 0;
  /** Characters of these up to the end of the last tag, comment or section. */
  #markupEnd = 0;
  /** True in a tag, comment or section, and in a reference: text may not be cut there. */
  #isInMarkup = false;
  #isInReference = false;
  #left: number;

  constructor(events: DocumentEvents, limits: DocumentLimits = {}) {
    const { maxDepth = 100, maxAttributes = 1000, maxPieceLength = 4_194_304 } = limits;
    const { budget = 16_777_216 } = limits;
    this.#events = events;
    this.#limits = { maxDepth, maxAttributes, maxPieceLength, budget };
    this.#left = budget;
    this.#parser = new SaxesParser({ xmlns: true, position: true });
    this.#parser.on("xmldecl", ({ encoding }) => {
      if (encoding !== undefined && !/^(utf-8|us-ascii)$/i.test(encoding)) {
        this.#fail(`the encoding ${encoding}: only UTF-8 is read`);
      }
    });
    this.#parser.on("doctype", () => this.#fail("a document type declaration"));
    // The parser writes a position before each message, and a full stop behind it.
    this.#parser.on("error", ({ message }) => this.#fail(message.replace(/^\d+:\d+: |\.$/g, "")));
    this.#parser.on("opentag", (tag) => this.#opened(tag));
    this.#parser.on("closetag", () => this.#closed());
    this.#parser.on("text", (text) => this.#text(text));
    this.#parser.on("cdata", (text) => {
      this.#markupEnded();
      this.#text(text);
    });
    this.#parser.on("comment", () => this.#markupEnded());
    this.#parser.on("processinginstruction", () => this.#markupEnded());
  }

  /** Line that is being read, counted from 1. */
  get line(): number {
    return this.#parser.line;
  }

  /**
   * Reads on. The callbacks are called for everything that has ended.
   *
   * @throws CausewayError `xmpp/document-refused`, which names the line; then nothing more can be read
   */
  push(bytes: Uint8Array): void {
    this.#write(bytes);
  }

  /** Reads the end of the document, with the same errors. */
  end(): void {
    this.#write(undefined);
    if (!this.#hasRoot) this.#fail("no element");
  }

  /** Gives the elements that are built from now on a budget of their own. */
  renewBudget(): void {
    this.#left = this.#limits.budget;
  }

  #write(bytes: Uint8Array | undefined): void {
    let text: string;
    try {
      text = bytes === undefined ? this.#decoder.decode() : this.#decoder.decode(bytes, STREAM);
    } catch {
      return this.#fail("bytes that are not UTF-8");
    }
    this.#give(text);
    const { maxPieceLength } = this.#limits;
    const isCut = this.#piece > maxPieceLength / 2 && !this.#isInMarkup && !this.#isInReference &&
      !text.endsWith("\r"); // a line feed that follows belongs to it
    if (isCut) this.#give(FLUSH);
    if (this.#piece > maxPieceLength + text.length) {
      this.#fail(`a tag, comment or reference of more than ${maxPieceLength} characters`);
    }
    if (bytes === undefined) this.#parser.close();
  }

  #give(text: string): void {
    this.#piece += text.length;
    this.#parser.write(text);
    const tail = text.slice(Math.max(0, this.#markupEnd - this.#given));
    this.#given += text.length;
    // Text has these characters for markup and references alone.
    if (tail.includes("<")) this.#isInMarkup = true;
    const [begin, end] = [tail.lastIndexOf("&"), tail.lastIndexOf(";")];
    if (begin !== end) this.#isInReference = begin > end;
  }

  #markupEnded(): void {
    this.#piece = 0;
    this.#markupEnd = this.#parser.position;
    this.#isInMarkup = false;
    this.#isInReference = false;
  }

  #opened(tag: SaxesTagNS): void {
    this.#markupEnded();
    this.#hasRoot = true;
    const depth = this.#entered + this.#skipped + this.#open.length;
    if (depth >= MAX_LEFT_OUT_DEPTH) {
      this.#fail(`elements nested deeper than ${MAX_LEFT_OUT_DEPTH}`);
    }
    const problem = this.#excessOf(tag, depth);
    if (this.#skipped > 0) this.#skipped++;
    else if (this.#open.length > 0) this.#build(tag, problem);
    else {
      const step = this.#events.opened(tagOf(tag));
      if (step === "skip") this.#skipped = 1;
      else if (step === "build") this.#build(tag, problem);
      else if (problem === undefined) this.#entered++;
      else this.#fail(problem);
    }
  }

  /** Names the limit that a tag exceeds. */
  #excessOf(tag: SaxesTagNS, depth: number): string | undefined {
    const { maxDepth, maxAttributes } = this.#limits;
    if (depth >= maxDepth) return `elements nested deeper than ${maxDepth}`;
    if (Object.keys(tag.attributes).length <= maxAttributes) return undefined;
    return `an element with more than ${maxAttributes} attributes`;
  }

  #closed(): void {
    this.#markupEnded();
    if (this.#skipped > 0) this.#skipped--;
    else if (this.#open.length === 0) {
      this.#entered--;
      this.#events.closed();
    } else {
      const { tag, children } = this.#open.pop()!;
      const closed = new XmlElement(tag.local, tag.uri, attributesOf(tag), joinText(children));
      const parent = this.#open.at(-1);
      if (parent === undefined) this.#events.built(closed);
      else parent.children.push(closed);
    }
  }

  #text(text: string): void {
    this.#piece = 0;
    const parent = this.#open.at(-1);
    if (parent === undefined) return; // text between the parts of a document has no meaning
    parent.children.push(text);
    this.#spend(text.length);
  }

  #build(tag: SaxesTagNS, problem: string | undefined): void {
    this.#open.push({ tag, children: [] });
    if (problem !== undefined) return this.#leaveOut();
    const attributes = Object.values(tag.attributes);
    const characters = attributes.reduce(
      (sum, { name, value }) => sum + name.length + value.length,
      0,
    );
    this.#spend(ELEMENT_COST * (1 + attributes.length) + tag.name.length + characters);
  }

  #spend(cost: number): void {
    this.#left -= cost;
    if (this.#left >= 0) return;
    this.#left = 0;
    this.#leaveOut();
  }

  /** Leaves out the tree that is being built. */
  #leaveOut(): void {
    const [root] = this.#open;
    this.#skipped = this.#open.length;
    this.#open = [];
    this.#events.tooLarge(tagOf(root!.tag));
  }

  #fail(what: string): never {
    throw new CausewayError(
      "xmpp/document-refused",
      `Cannot read line ${this.#parser.line} of the document: ${what}`,
    );
  }
}

const STREAM = { stream: true } as const;

function tagOf(tag: SaxesTagNS): DocumentTag {
  return {
    name: tag.local,
    namespace: tag.uri,
    attribute: (name) =>
      Object.hasOwn(tag.attributes, name) ? tag.attributes[name]?.value : undefined,
  };
}
