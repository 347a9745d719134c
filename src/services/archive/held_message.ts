import type { ArchivedMessage } from "../../storage/mod.ts";
import type { BareJid, Jid, StanzaErrorCondition } from "../../xmpp/mod.ts";

/** Archive that is to have a message; docs at `ArchiveSide` of the router. */
export type ArchiveSide = "sender" | "recipient" | "absent";

/** A message on its way into an archive. */
export interface Noting {
  /** Calls `goOn` when the message may go on: within this call if that is so already. */
  whenReady(goOn: () => void): void;
  /** Calls `call` when the message need no longer be kept for the archive, at once if that is so already. */
  whenSettled(call: () => void): void;
  /** True once it need no longer be kept for the archive. */
  readonly isSettled: boolean;
  /** True when the archive has the message. */
  readonly isStored: boolean;
  /** Takes the message back, unless a transaction has it already. */
  takeBack(): void;
}

/** A message that is held in memory until its archive has it, or will not have it. */
export class HeldMessage implements Noting {
  readonly account: BareJid;
  /** The other side. */
  readonly peer: Jid;
  archived: ArchivedMessage;
  /** Takes it back from its writer, or from the roster's queue; false when a transaction has it. */
  leaveWriter: (() => boolean) | undefined;
  /** True when others wait until the archive has it. */
  isAwaited: boolean;
  readonly #release: () => void;
  /** Calls to those who wait for it, if anybody does. */
  #waits: (() => void)[] | undefined;
  #isReady = false;
  /** Calls to those who are told that it is settled, if anybody is. */
  #told: (() => void)[] | undefined;
  #answer: PromiseWithResolvers<StanzaErrorCondition | undefined> | undefined;
  #condition: StanzaErrorCondition | undefined;
  #state: "open" | "given-up" | "stored" | "not-stored" = "open";

  /** @param release gives its room back */
  constructor(
    { account, peer, side }: {
      readonly account: BareJid;
      readonly peer: Jid;
      readonly side: ArchiveSide;
    },
    archived: ArchivedMessage,
    release: () => void,
  ) {
    this.account = account;
    this.peer = peer;
    this.archived = archived;
    this.isAwaited = side !== "sender";
    this.#release = release;
  }

  whenReady(goOn: () => void): void {
    if (this.#isReady) goOn();
    else (this.#waits ??= []).push(goOn);
  }

  whenSettled(call: () => void): void {
    if (this.isSettled) call();
    else (this.#told ??= []).push(call);
  }

  /** Resolves to the error for its sender; undefined when the sender gets none. */
  get answer(): Promise<StanzaErrorCondition | undefined> {
    this.#answer ??= Promise.withResolvers();
    if (this.#state !== "open") this.#answer.resolve(this.#condition);
    return this.#answer.promise;
  }

  get isSettled(): boolean {
    return this.#state === "stored" || this.#state === "not-stored";
  }

  get isStored(): boolean {
    return this.#state === "stored";
  }

  /** True when nobody waits for it any more. */
  get isGivenUp(): boolean {
    return this.#state === "given-up";
  }

  /** Lets those go on who wait for it. It stays on its way. */
  goOn(): void {
    this.#isReady = true;
    const waits = this.#waits;
    this.#waits = undefined;
    for (const goOn of waits ?? []) goOn();
  }

  /** Answers for it at once. It ends now, if it can be taken back, and else at its time. */
  giveUp(condition: StanzaErrorCondition): void {
    if (this.isSettled) return;
    this.#state = "given-up";
    this.#answered(condition);
    if (this.leaveWriter?.() === true) this.end();
  }

  takeBack(): void {
    this.giveUp("service-unavailable");
  }

  /** Notes that its archive has it. */
  stored(): void {
    this.#finish("stored", undefined);
  }

  /** Notes that its archive will not have it. */
  end(condition?: StanzaErrorCondition): void {
    this.#finish("not-stored", condition);
  }

  #finish(state: "stored" | "not-stored", condition: StanzaErrorCondition | undefined): void {
    const isAnswered = this.#state === "given-up";
    this.#state = state;
    this.#release();
    if (!isAnswered) this.#answered(condition);
    this.goOn();
    const told = this.#told;
    this.#told = undefined;
    for (const call of told ?? []) call();
  }

  #answered(condition: StanzaErrorCondition | undefined): void {
    this.#condition = condition;
    this.#answer?.resolve(condition);
  }
}
