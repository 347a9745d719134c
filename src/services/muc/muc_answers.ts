import type { Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  errorReply,
  STANZA_ERROR_NAMESPACE,
  stanzaId,
} from "../../xmpp/mod.ts";
import { iqResult } from "../iq_result.ts";
import type { IqAnswer } from "../iq_service.ts";
import type { RoomIntake, RoomStanza } from "../rooms/mod.ts";
import type { MucServerDeps } from "./muc_ports.ts";

/** Collaborators of `MucAnswers`. */
export interface MucAnswersDeps<Taken extends RoomStanza>
  extends Pick<MucServerDeps<Taken>, "answer"> {
  readonly intake: Pick<RoomIntake<Taken>, "refuse">;
}

/** Error that answers a stanza. */
export interface Refusal {
  readonly error: StanzaErrorCondition;
  /** Text for people. @default none */
  readonly text?: string;
}

/** Answers stanzas to rooms. */
export class MucAnswers<Taken extends RoomStanza> {
  readonly #deps: MucAnswersDeps<Taken>;

  constructor(deps: MucAnswersDeps<Taken>) {
    this.#deps = deps;
  }

  /**
   * Answers a stanza with an error.
   * @param text for people. @default none
   */
  refuse(taken: Taken, condition: StanzaErrorCondition, text?: string): void {
    // Presence that finds no recipient has no answer elsewhere. A full room does (§7.2.9).
    const { stanza } = taken;
    const isFull = stanza.kind === "presence" && condition === "service-unavailable";
    const error = isFull
      ? fullRoomError(stanza)
      : text === undefined
      ? undefined
      : errorReply(stanza, condition, { text });
    this.#deps.intake.refuse(taken, condition, error);
  }

  /** Answers a request. */
  finish(taken: Taken, answer: IqAnswer): void {
    if (answer !== "empty" && "error" in answer) return this.refuse(taken, answer.error);
    const { stanza } = taken;
    const { from, to } = stanza;
    this.#deps.answer(iqResult(answer, { id: stanzaId(stanza), from: to, to: from }), taken);
  }
}

function fullRoomError(presence: Stanza): Stanza {
  const error = element(
    "error",
    { type: "wait" },
    element("service-unavailable", { xmlns: STANZA_ERROR_NAMESPACE }),
  );
  const answer = element("presence", { type: "error", id: stanzaId(presence) }, error);
  return buildStanza(answer, { from: presence.to, to: presence.from });
}
