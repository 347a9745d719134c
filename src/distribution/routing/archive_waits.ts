import type { Envelope } from "../envelope.ts";
import type { Archiving, Noted } from "./archiving.ts";
import type { Noting } from "./ports.ts";
import type { Refusals } from "./refusals.ts";
import type { DirectWait, Finish, Pending } from "./sender_workers.ts";

/** Waits of messages for room in archives, and for their recipients' archives before they are delivered. */
export class ArchiveWaits {
  readonly #archiving: Archiving;
  readonly #refusals: Refusals;
  readonly #slow: (envelope: Envelope) => void;

  /** @param slow slows the sender of a stanza that waits for something scarce */
  constructor(archiving: Archiving, refusals: Refusals, slow: (envelope: Envelope) => void) {
    this.#archiving = archiving;
    this.#refusals = refusals;
    this.#slow = slow;
  }

  /** Makes the sender's archive take a message before it is routed. Returns false when there is no room. */
  askSender(envelope: Envelope): boolean {
    return this.#archiving.forSender(envelope, this.#archiving.mayWait(envelope));
  }

  /** Makes a message wait for room in its sender's archive, and calls `again` once there is some. */
  forSenderRoom(envelope: Envelope, again: Finish): Pending {
    return this.#withoutRoom(envelope, { ask: () => this.askSender(envelope), again });
  }

  /**
   * The one gate before a message is delivered to a person here: returns a wait when the recipient's
   * archive is to have it first. Then `again` comes to this gate again. It must not wait for a lookup,
   * lest messages that have later places in the archive overtake this one.
   */
  beforeDelivery(envelope: Envelope, again: Finish): Pending | undefined {
    const mayWait = this.#archiving.mayWait(envelope);
    const noted = this.noteDelivery(envelope, mayWait);
    if (noted === "resource-constraint") {
      const ask = () => this.noteDelivery(envelope, mayWait) !== "resource-constraint";
      return this.#withoutRoom(envelope, { ask, again });
    }
    return noted && this.#whenNoted(envelope, noted, again);
  }

  /**
   * Slows the sender of a message down for which an archive has no room. The message waits until there
   * is some, and is refused when it has waited for too long, or may not wait.
   */
  async #withoutRoom(
    envelope: Envelope,
    { ask, again }: { ask(): boolean; readonly again: Finish },
  ): Promise<Finish> {
    const refuse: Finish = () => {
      this.#archiving.refused(envelope);
      this.#refusals.refuseForRoom(envelope, "archive");
    };
    if (!this.#archiving.mayWait(envelope)) return refuse;
    envelope.detach();
    await undefined; // its sender's worker has noted by then that it waits
    this.#slow(envelope);
    return await this.#archiving.whenRoom(envelope, ask) ? again : refuse;
  }

  /**
   * Waits for an archive before `finish`. No promise is between the two: the archive ends one message
   * after the other, and each is delivered before the next one is ended.
   */
  #whenNoted(envelope: Envelope, noted: Noting, finish: Finish): DirectWait {
    const rest: Finish = () => {
      this.#archiving.goOn(envelope, noted);
      return finish();
    };
    return { whenOver: (goOn) => noted.whenReady(() => goOn(rest)) };
  }

  /** Returns what a bounced stanza waits for before it is sent on its way. */
  inBounce(envelope: Envelope): Promise<void> | undefined {
    const noted = this.noteDelivery(envelope);
    if (noted === undefined || noted === "resource-constraint") return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    noted.whenReady(() => {
      this.#archiving.goOn(envelope, noted);
      resolve();
    });
    return promise;
  }

  /**
   * Makes the recipient's archive take a message that is about to be delivered here.
   * @param isEarly true when the router asks again in the end, if there is no room now
   */
  noteDelivery(envelope: Envelope, isEarly = false): Noted {
    if (envelope.stanza.kind !== "message") return undefined;
    return this.#archiving.forRecipient(envelope, isEarly);
  }
}
