import type { RoomMessage } from "../../storage/mod.ts";
import type { XmlElement } from "../../xmpp/mod.ts";
import { MUC } from "./namespaces.ts";

/** Messages that a newcomer wants of a room's past (XEP-0045 §7.2.14). */
export interface HistoryRequest {
  readonly maxStanzas?: number;
  readonly maxChars?: number;
  /** Wall-clock milliseconds of the oldest one. */
  readonly sinceMs?: number;
}

const DIGITS = /^\d{1,9}$/;

/** Reads the wish of a newcomer. What cannot be read counts as not written. Pure. */
export function readHistoryRequest(join: XmlElement, nowMs: number): HistoryRequest {
  const history = join.child("history", MUC);
  const numberIn = (name: string) => {
    const text = history?.attribute(name);
    return text !== undefined && DIGITS.test(text) ? Number(text) : undefined;
  };
  const maxStanzas = numberIn("maxstanzas");
  const maxChars = numberIn("maxchars");
  const seconds = numberIn("seconds");
  const written = Date.parse(history?.attribute("since") ?? "");
  const sinceMs = Math.max(
    seconds === undefined ? -Infinity : nowMs - seconds * 1_000,
    Number.isNaN(written) ? -Infinity : written,
  );
  return {
    ...maxStanzas !== undefined && { maxStanzas },
    ...maxChars !== undefined && { maxChars },
    ...sinceMs !== -Infinity && { sinceMs },
  };
}

/** Returns a wish that asks for no more messages than a newcomer gets at most. Pure. */
export function limitedTo(wish: HistoryRequest, historySize: number): HistoryRequest {
  return { ...wish, maxStanzas: Math.min(wish.maxStanzas ?? historySize, historySize) };
}

/** Returns the messages that newcomers may get, without changes of the subject. Pure. */
export function pastOf(
  messages: readonly RoomMessage[],
  { takes, oldestMs }: {
    /** True for a message that is meant to be kept. */
    readonly takes: (message: Uint8Array) => boolean;
    /** Wall-clock milliseconds of the oldest one that is kept. */
    readonly oldestMs: number;
  },
): readonly RoomMessage[] {
  return messages.filter(({ stanza, sentAtMs }) =>
    sentAtMs >= oldestMs && takes(new TextEncoder().encode(stanza))
  );
}

/** Returns the newest messages that fit a wish, in their order. Pure. */
export function chooseHistory(
  messages: readonly RoomMessage[],
  { maxStanzas = Infinity, maxChars = Infinity, sinceMs = -Infinity }: HistoryRequest,
): readonly RoomMessage[] {
  const chosen: RoomMessage[] = [];
  let chars = 0;
  for (const message of messages.toReversed()) {
    chars += message.stanza.length;
    if (chosen.length >= maxStanzas || chars > maxChars || message.sentAtMs < sinceMs) break;
    chosen.push(message);
  }
  return chosen.toReversed();
}
