import type { ArchivedMessage } from "../../storage/mod.ts";
import type { BareJid, Jid, StanzaErrorCondition } from "../../xmpp/mod.ts";

/** A message on its way into an archive. */
export interface Noting {
  /** Calls `goOn` when the message may go on: within this call if that is so already. */
  whenReady(goOn: () => void): void;
  /** Resolves when it needs no longer be kept for the archive. Never rejects. */
  readonly settled: Promise<void>;
  /** True once `settled` is resolved. */
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
  /** Takes it back from its writer; false when a transaction has it. */
  leaveWriter: (() => boolean) | undefined;
  readonly #release: () => void;
  /** Those who wait for it; undefined once it may go on. */
  #waits: (() => void)[] | undefined = [];
  readonly #settled = Promise.withResolvers<void>();
  readonly #answer = Promise.withResolvers<StanzaErrorCondition | undefined>();
  #state: "open" | "given-up" | "stored" | "not-stored" = "open";

  /** @param release gives its room back */
  constructor(
    { account, peer }: { readonly account: BareJid; readonly peer: Jid },
    archived: ArchivedMessage,
    release: () => void,
  ) {
    this.account = account;
    this.peer = peer;
    this.archived = archived;
    this.#release = release;
  }

  whenReady(goOn: () => void): void {
    if (this.#waits === undefined) goOn();
    else this.#waits.push(goOn);
  }

  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  /** Resolves to the error for its sender; undefined when the sender gets none. */
  get answer(): Promise<StanzaErrorCondition | undefined> {
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
    const waits = this.#waits ?? [];
    this.#waits = undefined;
    for (const goOn of waits) goOn();
  }

  /** Answers for it at once. It ends now, if it can be taken back, and else at its time. */
  giveUp(condition: StanzaErrorCondition): void {
    if (this.isSettled) return;
    this.#state = "given-up";
    this.#answer.resolve(condition);
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
    this.#state = state;
    this.#release();
    this.#answer.resolve(condition);
    this.#settled.resolve();
    this.goOn();
  }
}
