import type { FullJid } from "../jid/jid.ts";
import type { Delivery } from "./delivery.ts";
import type { StreamManagement } from "./stream_management.ts";
import type { UnackedQueue } from "./unacked_queue.ts";

/**
 * Ends of the streams of one session, and the stanza that may have caused them.
 *
 * A stanza that its client cannot read ends the stream, and would end each later stream that it is
 * written to. To find that stanza, an account that `StreamSuspects` warns of gets its stanzas in small
 * steps: first one alone, then, as they are acknowledged, two, four and so on. A stream may end by the
 * client's doing while one stanza alone is unacknowledged. That end counts against the stanza if the
 * client refuses it by a stream error or goes within `suspectWithinMs`. A stanza that the client proves
 * to have handled was not the cause. After `maxStreamEnds` such ends the stanza is given to `giveUp`.
 */
export class StreamEnds {
  readonly #management: StreamManagement;
  readonly #jid: FullJid;
  readonly #queue: UnackedQueue;
  /** Acknowledged stanzas at the start of the present stream. */
  #acknowledgedBefore = 0;
  /** The only stanza that can have ended the last stream. */
  #suspect: Delivery | undefined;

  constructor(management: StreamManagement, jid: FullJid, queue: UnackedQueue) {
    this.#management = management;
    this.#jid = jid;
    this.#queue = queue;
  }

  /**
   * Handles the start of a stream.
   * @returns true when its stanzas are to be written in small steps
   */
  began(): boolean {
    const { suspects, clock } = this.#management;
    this.#acknowledgedBefore = this.#queue.acknowledgedCount;
    return suspects.isWarned(this.#jid.bare.text, clock.monotonicMs());
  }

  /**
   * Handles the end of the stream by the client.
   * @param isRefusal true when the client has said that it cannot accept what it was sent
   * @param lastWriteMs time of the last write in small steps; −Infinity without one
   */
  ended(isRefusal: boolean, lastWriteMs: number): void {
    const { options, suspects, clock } = this.#management;
    const written = this.#queue.unacknowledgedWrites;
    if (options.maxStreamEnds === 0 || written === 0) return;
    const nowMs = clock.monotonicMs();
    const account = this.#jid.bare.text;
    if (isRefusal) suspects.refused(account, nowMs);
    else if (this.#queue.acknowledgedCount === this.#acknowledgedBefore) {
      suspects.endedBarren(account, nowMs);
    }
    if (written > 1) return;
    const isSoon = nowMs - lastWriteMs < options.suspectWithinMs;
    if (isRefusal || isSoon) this.#suspect = this.#queue.first;
  }

  /**
   * Gives the stanza that ended the last stream to `giveUp`, if it has ended `maxStreamEnds`. Called
   * once the client can no longer prove that it has handled the stanza.
   */
  judge(): void {
    const suspect = this.#suspect;
    this.#suspect = undefined;
    if (suspect === undefined || this.#queue.first !== suspect) return;
    const { options, suspects, clock } = this.#management;
    const account = this.#jid.bare.text;
    const streams = suspects.blame(account, suspect.stanza, clock.monotonicMs());
    if (streams < options.maxStreamEnds) return;
    this.#queue.dropFirst();
    this.#management.giveUp(suspect, { jid: this.#jid, streams });
  }
}
