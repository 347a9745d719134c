import assert from "node:assert/strict";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "./stanza.ts";
import { isAsItSays } from "./stanza_check.ts";

const ALICE = "alice@example.com/a";
const BOB = "bob@example.com/b";
const FROM_TO = `from='${ALICE}' to='${BOB}'`;

function stanza(text: string | Uint8Array, fields: Partial<Stanza> = {}): Stanza {
  return {
    kind: "message",
    type: "chat",
    from: parseJid(ALICE),
    to: parseJid(BOB),
    bytes: typeof text === "string" ? new TextEncoder().encode(text) : text,
    ...fields,
  };
}

const TRUE: readonly (readonly [what: string, stanza: Stanza])[] = [
  ["a message", stanza(`<message ${FROM_TO} type='chat'><body>x &amp; y</body></message>`)],
  ["an empty one", stanza(`<message type="chat" to="${BOB}" from="${ALICE}"/>`)],
  ["one without a type", stanza(`<message ${FROM_TO}/>`, { type: "normal" })],
  ["one of an unknown type", stanza(`<message ${FROM_TO} type='x'/>`, { type: "normal" })],
  ["presence", stanza(`<presence ${FROM_TO}/>`, { kind: "presence", type: "available" })],
  ["a request", stanza(`<iq ${FROM_TO} type='get' id='1'/>`, { kind: "iq", type: "get" })],
  [
    "an address that is not normalised",
    stanza(`<message from='${ALICE}' to='BOB@Example.com/b' type='chat'/>`),
  ],
  [
    "an address with a reference",
    stanza(`<message from='alice@example.com/&lt;a&apos;' to='${BOB}' type='chat'/>`, {
      from: parseJid("alice@example.com/<a'"),
    }),
  ],
  [
    "a payload in a namespace of its own",
    stanza(
      `<message ${FROM_TO} type='chat' xmlns:p='urn:p'><p:x><message xmlns='jabber:client'/>` +
        `</p:x></message>`,
    ),
  ],
  [
    "as many attributes and levels as any configuration allows",
    stanza(`<message ${FROM_TO} type='chat'${attributes(2_000)}>${nested(249)}</message>`),
  ],
];

const FALSE: readonly (readonly [what: string, stanza: Stanza])[] = [
  ["another sender", stanza(`<message from='ceo@bank.net' to='${BOB}' type='chat'/>`)],
  ["the receiving host as its sender", stanza(`<message from='x@dc1.example.com' to='${BOB}'/>`)],
  ["another recipient", stanza(`<message from='${ALICE}' to='carol@example.com' type='chat'/>`)],
  ["no sender", stanza(`<message to='${BOB}' type='chat'/>`)],
  ["no recipient", stanza(`<message from='${ALICE}' type='chat'/>`)],
  ["an invalid sender", stanza(`<message from='@' to='${BOB}' type='chat'/>`)],
  ["another kind", stanza(`<iq ${FROM_TO} type='set' id='r'/>`)],
  ["an element that is not a stanza", stanza(`<a ${FROM_TO} type='chat'/>`)],
  ["a stream error", stanza(`<error ${FROM_TO} type='chat'/>`)],
  ["another type", stanza(`<message ${FROM_TO} type='error'/>`)],
  ["bytes without the stated type", stanza(`<message ${FROM_TO}/>`)],
  ["a request without an id", stanza(`<iq ${FROM_TO} type='get'/>`, { kind: "iq", type: "get" })],
  ["a namespace", stanza(`<message xmlns='jabber:server' ${FROM_TO} type='chat'/>`)],
  ["a prefix", stanza(`<p:message xmlns:p='urn:p' ${FROM_TO} type='chat'/>`)],
  ["a prefix that it does not declare", stanza(`<message ${FROM_TO} type='chat'><p:x/></message>`)],
  ["the end of the stream after it", stanza(`<message ${FROM_TO} type='chat'/></stream:stream>`)],
  ["a second stanza after it", stanza(`<message ${FROM_TO} type='chat'/><presence/>`)],
  ["white space after it", stanza(`<message ${FROM_TO} type='chat'/> `)],
  ["text before it", stanza(`x<message ${FROM_TO} type='chat'/>`)],
  ["a declaration", stanza(`<?xml version='1.0'?><message ${FROM_TO} type='chat'/>`)],
  ["a DTD", stanza(`<!DOCTYPE x [<!ENTITY a 'b'>]><message ${FROM_TO} type='chat'>&a;</message>`)],
  ["an entity", stanza(`<message ${FROM_TO} type='chat'>&a;</message>`)],
  ["a comment", stanza(`<message ${FROM_TO} type='chat'><!-- x --></message>`)],
  ["no end", stanza(`<message ${FROM_TO} type='chat'><body>`)],
  ["a wrong end", stanza(`<message ${FROM_TO} type='chat'></presence>`)],
  ["nothing", stanza("")],
  ["bytes that are not UTF-8", stanza(Uint8Array.of(0x3c, 0x61, 0xc0, 0x80, 0x2f, 0x3e))],
  ["too many attributes", stanza(`<message ${FROM_TO} type='chat'${attributes(2_048)}/>`)],
  ["too many levels", stanza(`<message ${FROM_TO} type='chat'>${nested(250)}</message>`)],
];

for (const [what, stanza] of TRUE) {
  Deno.test(`isAsItSays() is true for ${what}`, () => assert.equal(isAsItSays(stanza), true));
}

for (const [what, stanza] of FALSE) {
  Deno.test(`isAsItSays() is false for ${what}`, () => assert.equal(isAsItSays(stanza), false));
}

function attributes(count: number): string {
  return Array.from({ length: count }, (_, at) => ` a${at}=''`).join("");
}

function nested(levels: number): string {
  return "<x>".repeat(levels) + "</x>".repeat(levels);
}
