import type { BareJid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, CLIENT_NAMESPACE, element, FullJid, tryParseJid } from "../../xmpp/mod.ts";
import { NEWS } from "./namespaces.ts";
import type { Seat } from "./occupants.ts";
import type { PresenceNotes } from "./room_xml.ts";
import { isAffiliation, isRole } from "./room_standing.ts";
import type { Role } from "./room_standing.ts";

/**
 * Something that a node tells the others.
 *
 * | kind | meaning |
 * | --- | --- |
 * | `beat` | the node has sent `count` changes of its seats and `changes` of rooms so far |
 * | `want` | the node `of` is asked for all of its seats |
 * | `whole` | a part of all seats of the node; those that no part names are gone |
 * | `seat` | a session of the node has entered a room, or changed |
 * | `gone` | a session of the node has left a room |
 * | `left` | the session has left the room at the sender; its seat is still the node's `of` |
 * | `asleep` | the client of a session of the node has no connection; `isOver`: it has one again, or has gone |
 * | `posted` | the room has taken a message; without `number` the database has not got it yet |
 * | `role` | the node with the seats of somebody under a nickname is asked to give them a role |
 * | `changed` | the room's configuration or affiliations have changed in the database |
 * | `destroyed` | the room is gone from the database |
 *
 * Nodes of the version before know nothing of `asleep`, `changes`, `change`, `creation`, `account` and the
 * `number` and `next` of `gone`.
 */
export type News =
  | { readonly kind: "beat"; readonly count: number; readonly changes?: number }
  | { readonly kind: "want"; readonly of: number }
  | {
    readonly kind: "whole";
    readonly count: number;
    readonly changes?: number;
    readonly isFirst: boolean;
    readonly isLast: boolean;
    readonly seats: readonly Seat[];
  }
  | { readonly kind: "seat"; readonly count: number; readonly seat: Seat }
  | {
    readonly kind: "gone";
    readonly count: number;
    readonly room: string;
    readonly jid: string;
    readonly notes: PresenceNotes;
    readonly payload: readonly XmlElement[];
    /** Number up to which the session got messages, when another node has taken its seat over. */
    readonly number?: number | undefined;
    readonly next?: NextNode | undefined;
  }
  | {
    readonly kind: "left";
    readonly of: number;
    readonly room: string;
    readonly jid: string;
    /** `changedMs` of the seat. */
    readonly changedMs: number;
  }
  | { readonly kind: "asleep"; readonly jid: string; readonly isOver: boolean }
  | {
    readonly kind: "posted";
    readonly room: string;
    readonly id: string;
    readonly number: number | undefined;
    readonly sentAtMs: number;
    readonly text: string;
  }
  | {
    readonly kind: "role";
    readonly room: string;
    readonly nick: string;
    /** Bare JID of who had the nickname: somebody else may have it when the news come. */
    readonly account?: string;
    readonly role: Role;
    readonly notes: PresenceNotes;
  }
  | RoomChangeNews;

/** A node that has taken over the seat of another one. */
export interface NextNode {
  readonly process: number;
  /** Number of its changes of seats when it was heard to have the seat. */
  readonly count: number;
}

/** News of a room that are in the database as well. Those for all nodes have a number, `change`. */
export type RoomChangeNews =
  | {
    readonly kind: "changed";
    readonly change?: number;
    readonly room: string;
    readonly codes: readonly string[];
    readonly notes: PresenceNotes;
  }
  | {
    readonly kind: "destroyed";
    readonly change?: number;
    readonly room: string;
    /** Tells the room from others of its name. */
    readonly creation?: number;
    readonly notes: PresenceNotes;
  };

/** News with the node that sends it. */
export interface SentNews {
  /** Local host of its datacenter. */
  readonly host: string;
  /** Incarnation of its process. */
  readonly process: number;
  readonly news: News;
}

/** Elements in one piece of news at most: seats in a part, and the like. */
export const SEATS_IN_PART = 20;
const MAX_COUNT = Number.MAX_SAFE_INTEGER;

/** Builds the stanza with news. */
export function newsStanza(news: News, { process, from, to }: {
  readonly process: number;
  readonly from: BareJid;
  readonly to: BareJid;
}): Stanza {
  const { kind } = news;
  const content = (() => {
    switch (news.kind) {
      case "beat":
        return element(kind, { count: `${news.count}`, changes: textOf(news.changes) });
      case "want":
        return element(kind, { of: `${news.of}` });
      case "whole": {
        const { count, changes, isFirst, isLast, seats } = news;
        const marks = { first: isFirst ? "1" : undefined, last: isLast ? "1" : undefined };
        return element(
          kind,
          { count: `${count}`, changes: textOf(changes), ...marks },
          ...seats.map(seatElement),
        );
      }
      case "seat":
        return element(kind, { count: `${news.count}` }, seatElement(news.seat));
      case "gone": {
        const { count, room, jid, notes, payload, number, next } = news;
        return element(
          kind,
          {
            count: `${count}`,
            room,
            jid,
            number: textOf(number),
            next: textOf(next?.process),
            at: textOf(next?.count),
          },
          notesElement(notes),
          payloadElement(payload),
        );
      }
      case "left": {
        const { of, room, jid, changedMs } = news;
        return element(kind, { of: `${of}`, room, jid, changed: `${changedMs}` });
      }
      case "asleep":
        return element(kind, { jid: news.jid, over: news.isOver ? "1" : undefined });
      case "posted": {
        const { room, id, number, sentAtMs, text } = news;
        return element(
          kind,
          { room, id, number: textOf(number), sent: `${sentAtMs}` },
          text,
        );
      }
      case "role":
        return element(
          kind,
          { room: news.room, nick: news.nick, account: news.account, role: news.role },
          notesElement(news.notes),
        );
      case "changed":
        return element(
          kind,
          { change: textOf(news.change), room: news.room, codes: news.codes.join(" ") },
          notesElement(news.notes),
        );
      case "destroyed":
        return element(
          kind,
          {
            change: textOf(news.change),
            room: news.room,
            creation: textOf(news.creation),
          },
          notesElement(news.notes),
        );
    }
  })();
  const wrapped = element("news", { xmlns: NEWS, process: `${process}` }, content);
  return buildStanza(element("message", { type: "headline" }, wrapped), { from, to });
}

/**
 * Reads news out of a stanza; undefined for what is no news that this version understands.
 *
 * @param domain domain of the rooms
 */
export function readNews(message: XmlElement, host: string, domain: string): SentNews | undefined {
  const wrapped = message.child("news", NEWS);
  const process = numberIn(wrapped, "process");
  const content = wrapped?.elements[0];
  if (content === undefined || process === undefined) return undefined;
  const news = contentOf(content, { host, process, domain });
  return news === undefined ? undefined : { host, process, news };
}

interface Sender {
  readonly host: string;
  readonly process: number;
  readonly domain: string;
}

function contentOf(content: XmlElement, sender: Sender): News | undefined {
  const kind = content.name;
  const count = numberIn(content, "count");
  const changes = numberIn(content, "changes");
  const change = numberIn(content, "change");
  const room = roomIn(content, sender.domain);
  const notes = notesIn(content);
  switch (kind) {
    case "beat":
      return count === undefined
        ? undefined
        : { kind, count, ...changes !== undefined && { changes } };
    case "want": {
      const of = numberIn(content, "of");
      return of === undefined ? undefined : { kind, of };
    }
    case "whole": {
      const seats = content.elements.map((each) => seatIn(each, sender));
      if (count === undefined || seats.includes(undefined)) return undefined;
      return {
        kind,
        count,
        ...changes !== undefined && { changes },
        isFirst: content.attribute("first") === "1",
        isLast: content.attribute("last") === "1",
        seats: seats.filter((seat) => seat !== undefined),
      };
    }
    case "seat": {
      const seat = content.elements[0] && seatIn(content.elements[0], sender);
      return count === undefined || seat === undefined ? undefined : { kind, count, seat };
    }
    case "gone": {
      const jid = fullJidIn(content);
      if (count === undefined || room === undefined || jid === undefined) return undefined;
      const number = numberIn(content, "number");
      const [process, at] = [numberIn(content, "next"), numberIn(content, "at")];
      const next = process === undefined || at === undefined ? undefined : { process, count: at };
      const about = { room, jid, notes, payload: payloadIn(content), ...next && { next } };
      return { kind, count, ...about, ...number !== undefined && { number } };
    }
    case "left": {
      const of = numberIn(content, "of");
      const jid = fullJidIn(content);
      const changedMs = numberIn(content, "changed");
      if (of === undefined || room === undefined || jid === undefined) return undefined;
      return changedMs === undefined ? undefined : { kind, of, room, jid, changedMs };
    }
    case "asleep": {
      const jid = fullJidIn(content);
      if (jid === undefined) return undefined;
      return { kind, jid, isOver: content.attribute("over") === "1" };
    }
    case "posted": {
      const id = content.attribute("id");
      const sentAtMs = numberIn(content, "sent");
      if (room === undefined || id === undefined || sentAtMs === undefined) return undefined;
      return { kind, room, id, number: numberIn(content, "number"), sentAtMs, text: content.text };
    }
    case "role": {
      const nick = content.attribute("nick");
      const account = content.attribute("account");
      const role = content.attribute("role") ?? "";
      if (room === undefined || nick === undefined || !isRole(role)) return undefined;
      return { kind, room, nick, ...account !== undefined && { account }, role, notes };
    }
    case "changed": {
      const codes = codesIn(content);
      return room === undefined
        ? undefined
        : { kind, ...change !== undefined && { change }, room, codes, notes };
    }
    case "destroyed": {
      const creation = numberIn(content, "creation");
      return room === undefined ? undefined : {
        kind,
        ...change !== undefined && { change },
        room,
        ...creation !== undefined && { creation },
        notes,
      };
    }
    default:
      return undefined; // of a later version
  }
}

function seatElement(seat: Seat): XmlElement {
  const { room, jid, nick, affiliation, role, joinedMs, changedMs, payload } = seat;
  return element(
    "seat",
    { room, jid, nick, affiliation, role, joined: `${joinedMs}`, changed: `${changedMs}` },
    payloadElement(payload),
  );
}

function seatIn(written: XmlElement, { host, process, domain }: Sender): Seat | undefined {
  const room = roomIn(written, domain);
  const jid = fullJidIn(written);
  const nick = written.attribute("nick");
  const affiliation = written.attribute("affiliation") ?? "";
  const role = written.attribute("role") ?? "";
  const joinedMs = numberIn(written, "joined");
  const changedMs = numberIn(written, "changed");
  if (room === undefined || jid === undefined || nick === undefined || nick === "") {
    return undefined;
  }
  if (!isAffiliation(affiliation) || !isRole(role)) return undefined;
  if (joinedMs === undefined || changedMs === undefined) return undefined;
  const payload = payloadIn(written);
  return { room, jid, nick, affiliation, role, joinedMs, changedMs, payload, host, process };
}

function payloadElement(payload: readonly XmlElement[]): XmlElement | undefined {
  // Elements of a stanza without a namespace of their own have that of clients.
  return payload.length === 0
    ? undefined
    : element("payload", {}, element("presence", { xmlns: CLIENT_NAMESPACE }, ...payload));
}

function payloadIn(parent: XmlElement): readonly XmlElement[] {
  return parent.child("payload")?.child("presence", CLIENT_NAMESPACE)?.elements ?? [];
}

function notesElement(notes: PresenceNotes): XmlElement {
  const { codes = [], newNick, affiliation, actor, reason, destroyed } = notes;
  return element("notes", {
    affiliation,
    codes: codes.join(" "),
    nick: newNick,
    actor,
    reason,
    destroyed: destroyed === undefined ? undefined : "1",
    alternate: destroyed?.alternate,
    why: destroyed?.reason,
  });
}

function notesIn(parent: XmlElement): PresenceNotes {
  const notes = parent.child("notes");
  const newNick = notes?.attribute("nick");
  const affiliation = notes?.attribute("affiliation") ?? "";
  const actor = notes?.attribute("actor");
  const reason = notes?.attribute("reason");
  const alternate = notes?.attribute("alternate");
  const why = notes?.attribute("why");
  return {
    codes: notes === undefined ? [] : codesIn(notes),
    ...newNick !== undefined && { newNick },
    ...isAffiliation(affiliation) && { affiliation },
    ...actor !== undefined && { actor },
    ...reason !== undefined && { reason },
    ...notes?.attribute("destroyed") === "1" && {
      destroyed: {
        ...alternate !== undefined && { alternate },
        ...why !== undefined && { reason: why },
      },
    },
  };
}

function codesIn(parent: XmlElement): readonly string[] {
  return (parent.attribute("codes") ?? "").split(" ").filter((code) => /^\d{3}$/.test(code));
}

function textOf(number: number | undefined): string | undefined {
  return number === undefined ? undefined : `${number}`;
}

function numberIn(parent: XmlElement | undefined, name: string): number | undefined {
  const text = parent?.attribute(name) ?? "";
  const number = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  return number <= MAX_COUNT ? number : undefined;
}

function roomIn(parent: XmlElement, domain: string): string | undefined {
  const jid = tryParseJid(parent.attribute("room") ?? "");
  const isRoom = jid !== undefined && jid === jid.bare && jid.localpart !== "" &&
    jid.domainpart === domain;
  return isRoom ? jid.text : undefined;
}

function fullJidIn(parent: XmlElement): string | undefined {
  const jid = tryParseJid(parent.attribute("jid") ?? "");
  return jid instanceof FullJid && jid.localpart !== "" ? jid.text : undefined;
}
