import type { StanzaKind, StanzaMark } from "../ledger/mod.ts";

/** Text that makes a message as long as people's are. */
const FILLER = "The quick brown fox jumps over the lazy dog and goes its way.";
const NAMESPACE = "urn:example:load";
const ID = / id=['"]L(\d+)\.(\d+)['"]/;
const TEXT = />~(\d+)\.(\d+) /;
const CONDITION = /<([a-z-]+) xmlns=['"]urn:ietf:params:xml:ns:xmpp-stanzas/;
const TYPE = / type=['"]([a-z]+)['"]/;
const FROM = / from=['"]([^'"]+)['"]/;

/** Form of a numbered stanza. */
export interface LoadStanzaOptions {
  /** Makes it longer. @default nothing */
  readonly padding?: string;
  /** Type of a message. @default "chat" */
  readonly type?: "chat" | "normal";
  /** False for a message that no archive keeps (XEP-0334). @default true */
  readonly isStored?: boolean;
}

/** A stanza that tells in its id and in its text which one it is. */
export function loadStanza(
  kind: StanzaKind,
  to: string,
  { flow, seq }: StanzaMark,
  { padding = "", type = "chat", isStored = true }: LoadStanzaOptions = {},
): string {
  const attributes = `to='${to}' id='L${flow}.${seq}'`;
  const text = `~${flow}.${seq} ${FILLER}`;
  const more = padding === "" ? "" : `<more xmlns='${NAMESPACE}'>${padding}</more>`;
  switch (kind) {
    case "message":
      return `<message type='${type}' ${attributes}><body>${text}</body>${more}` +
        `${isStored ? "" : "<no-store xmlns='urn:xmpp:hints'/>"}</message>`;
    case "iq":
      return `<iq type='get' ${attributes}><question xmlns='${NAMESPACE}'>${text}` +
        `${more}</question></iq>`;
    case "presence":
      return `<presence ${attributes}><status>${text}</status>${more}</presence>`;
  }
}

/** The result of a received request. */
export function loadResult(request: string): string {
  const head = headOf(request);
  const [id, from] = [ID.exec(head)![0], FROM.exec(head)![1]]; // `readLoadStanza` has found them
  return `<iq type='result' to='${from}'${id}/>`;
}

/** Kind of a received stanza. */
export type LoadStanza =
  | { readonly kind: "arrival" | "result"; readonly mark: StanzaMark }
  | { readonly kind: "error"; readonly mark: StanzaMark; readonly condition: string }
  /** A stanza that differs from every sent one. */
  | { readonly kind: "stray" }
  /** A stanza that does not belong to a load. */
  | { readonly kind: "foreign" };

/** Reads a stanza that was received, or written. */
export function readLoadStanza(text: string): LoadStanza {
  const head = headOf(text);
  const id = ID.exec(head);
  if (id === null) return { kind: "foreign" };
  const mark = { flow: Number(id[1]), seq: Number(id[2]) };
  const type = TYPE.exec(head)?.[1];
  if (type === "error") {
    return { kind: "error", mark, condition: CONDITION.exec(text)?.[1] ?? "undefined-condition" };
  }
  if (type === "result") return { kind: "result", mark };
  const body = TEXT.exec(text);
  const isWhole = body?.[1] === id[1] && body?.[2] === id[2] && text.includes(`${FILLER}<`);
  return isWhole ? { kind: "arrival", mark } : { kind: "stray" };
}

function headOf(text: string): string {
  return text.slice(0, text.indexOf(">"));
}
