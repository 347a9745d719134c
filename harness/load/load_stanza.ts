import type { StanzaMark } from "../ledger/mod.ts";

/** Text that makes a message as long as people's are. */
const FILLER = "The quick brown fox jumps over the lazy dog and goes its way.";
const ID = / id=['"]L(\d+)\.(\d+)['"]/;
const BODY = /<body>~(\d+)\.(\d+) /;
const CONDITION = /<([a-z-]+) xmlns=['"]urn:ietf:params:xml:ns:xmpp-stanzas/;
const TYPE = / type=['"]([a-z]+)['"]/;

/** A message that tells in its id and in its body which one it is. */
export function loadMessage(to: string, { flow, seq }: StanzaMark): string {
  return `<message type='chat' to='${to}' id='L${flow}.${seq}'>` +
    `<body>~${flow}.${seq} ${FILLER}</body></message>`;
}

/** What a received message is. */
export type LoadStanza =
  | { readonly kind: "arrival"; readonly mark: StanzaMark }
  | { readonly kind: "error"; readonly mark: StanzaMark; readonly condition: string }
  | { readonly kind: "stray" };

/** Reads a received `<message/>`. */
export function readLoadStanza(text: string): LoadStanza {
  const end = text.indexOf(">");
  const head = text.slice(0, end);
  const id = ID.exec(head);
  if (id === null) return { kind: "stray" };
  const mark = { flow: Number(id[1]), seq: Number(id[2]) };
  if (TYPE.exec(head)?.[1] === "error") {
    return { kind: "error", mark, condition: CONDITION.exec(text)?.[1] ?? "undefined-condition" };
  }
  const body = BODY.exec(text);
  const isWhole = body?.[1] === id[1] && body?.[2] === id[2] &&
    text.includes(`${FILLER}</body>`);
  return isWhole ? { kind: "arrival", mark } : { kind: "stray" };
}
