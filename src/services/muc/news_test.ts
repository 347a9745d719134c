import { deepStrictEqual, strictEqual } from "node:assert/strict";
import {
  element,
  parseElement,
  parseJid,
  serialize,
  stanzaElement,
  XmlElement,
} from "../../xmpp/mod.ts";
import type { News } from "./news.ts";
import { newsStanza, readNews } from "./news.ts";
import type { Seat } from "./occupants.ts";

const DOMAIN = "conference.example.com";
const ROOM = `coven@${DOMAIN}`;
const HOST = "dc1.example.com";
const NOTES = {
  codes: ["307", "110"],
  affiliation: "outcast",
  actor: "witch",
  reason: "a <b>",
  newNick: "bard 2",
  destroyed: { alternate: ROOM, reason: "over" },
} as const;

const SEAT: Seat = {
  room: ROOM,
  jid: "bob@example.com/ﬀ😀",
  nick: "bard",
  affiliation: "member",
  role: "participant",
  payload: stanzaElement({
    kind: "presence",
    type: "available",
    from: parseJid("bob@example.com/b"),
    to: parseJid(ROOM),
    bytes: new TextEncoder().encode("<presence><show>away</show><c xmlns='urn:x'/></presence>"),
  }).elements,
  joinedMs: 1_700_000_000_000,
  changedMs: 1_700_000_000_001,
  host: HOST,
  process: 7,
};

const NEWS: readonly News[] = [
  { kind: "beat", count: 3, changes: 2 },
  { kind: "beat", count: 3 },
  { kind: "want", of: 9 },
  { kind: "whole", count: 3, changes: 2, isFirst: true, isLast: false, seats: [SEAT] },
  { kind: "whole", count: 0, isFirst: true, isLast: true, seats: [] },
  { kind: "seat", count: 4, seat: SEAT },
  { kind: "gone", count: 5, room: ROOM, jid: SEAT.jid, notes: NOTES, payload: SEAT.payload },
  {
    kind: "gone",
    count: 5,
    room: ROOM,
    jid: SEAT.jid,
    notes: { codes: [] },
    payload: [],
    number: 7,
    next: { process: 8, count: 3 },
  },
  { kind: "asleep", jid: SEAT.jid, isOver: false },
  { kind: "asleep", jid: SEAT.jid, isOver: true },
  { kind: "left", of: 9, room: ROOM, jid: SEAT.jid, changedMs: 5 },
  {
    kind: "posted",
    room: ROOM,
    id: "a-1",
    number: 12,
    sentAtMs: 5,
    text: "<message>&amp;</message>",
  },
  { kind: "posted", room: ROOM, id: "a-1", number: undefined, sentAtMs: 5, text: "x" },
  { kind: "role", room: ROOM, nick: "bard", role: "none", notes: NOTES },
  {
    kind: "role",
    room: ROOM,
    nick: "bard",
    account: "bob@example.com",
    role: "none",
    notes: NOTES,
  },
  { kind: "changed", room: ROOM, codes: ["104"], notes: { codes: [] } },
  { kind: "changed", change: 1, room: ROOM, codes: ["104"], notes: { codes: [] } },
  { kind: "destroyed", room: ROOM, notes: NOTES },
  { kind: "destroyed", change: 2, room: ROOM, creation: 1_700_000_000_000, notes: NOTES },
];

/** Returns news with its elements as they are written. */
function comparable(news: News | undefined): unknown {
  const text = JSON.stringify(
    news,
    (_, value: unknown) => value instanceof XmlElement ? serialize(value) : value,
  );
  return JSON.parse(text);
}

Deno.test("readNews() reads what newsStanza() has written", () => {
  const [from, to] = [parseJid(HOST).bare, parseJid(DOMAIN).bare];
  for (const news of NEWS) {
    const stanza = newsStanza(news, { process: 7, from, to });
    const read = readNews(stanzaElement(stanza), HOST, DOMAIN);
    deepStrictEqual(comparable(read?.news), comparable(news), news.kind);
    deepStrictEqual([read?.host, read?.process], [HOST, 7]);
  }
});

Deno.test("readNews() takes nothing that is malformed, of another domain or of a later version", () => {
  const seat =
    `room='${ROOM}' jid='bob@example.com/b' nick='n' affiliation='none' role='visitor' ` +
    "joined='1' changed='1'";
  const cases = [
    "<beat/>",
    "<beat count='-1'/>",
    "<beat count='99999999999999999'/>",
    "<want of='x'/>",
    "<later count='1'/>",
    `<seat count='1'><seat ${seat.replace(ROOM, "coven@elsewhere.example.com")}/></seat>`,
    `<seat count='1'><seat ${seat.replace("bob@example.com/b", "bob@example.com")}/></seat>`,
    `<seat count='1'><seat ${seat.replace("role='visitor'", "role='king'")}/></seat>`,
    `<seat count='1'><seat ${seat.replace("nick='n'", "nick=''")}/></seat>`,
    `<whole count='1'><seat ${seat}/><seat/></whole>`,
    `<posted room='${DOMAIN}' id='x' sent='1'/>`,
    `<role room='${ROOM}' nick='n' role='owner'/>`,
    "",
  ];
  for (const each of cases) {
    const xml = `<message><news xmlns='urn:causeway:muc:0' process='1'>${each}</news></message>`;
    const message = parseElement(new TextEncoder().encode(xml));
    strictEqual(readNews(message, HOST, DOMAIN), undefined, each);
  }
  strictEqual(readNews(element("message"), HOST, DOMAIN), undefined);
});
