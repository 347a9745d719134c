import type { Fate } from "../../xmpp/mod.ts";
import { Duty } from "../mod.ts";
import { Envelope } from "../envelope.ts";

/** Settles the duty of a stanza once it and all its copies are settled. */
class SharedDuty implements Fate {
  readonly #duty: Duty;
  readonly leftOpen?: () => void;
  readonly slow?: () => () => void;
  #open: number;

  constructor(duty: Duty, open: number) {
    this.#duty = duty;
    this.#open = open;
    if (duty.isHeldBefore) this.leftOpen = () => duty.leaveOpen();
    if (duty.fate?.slow !== undefined) this.slow = () => duty.slowSender() ?? (() => {});
  }

  settle(): void {
    if (--this.#open === 0) this.#duty.settle();
  }
}

/**
 * Makes `count` copies of `envelope` for other nodes of this datacenter, or for a session. The duty that it had is
 * settled when it and all its copies are settled. A stanza that has a keeper is not lost with a
 * copy, so its copies have no duty.
 */
export function copyEnvelope(envelope: Envelope, count: number): readonly Envelope[] {
  if (envelope.hasKeeper || envelope.fate === undefined) {
    return copiesOf(envelope, count);
  }
  const duty = new Envelope(envelope);
  duty.adoptDuty(envelope);
  const shared = new SharedDuty(duty, count + 1);
  envelope.adoptDuty(new Envelope(envelope, shared));
  return copiesOf(envelope, count, shared);
}

/** Keeps the reports on a stanza back for a while: that it is settled, and that another node holds it. */
class KeptOpen implements Fate {
  readonly held?: () => void;
  readonly leftOpen?: () => void;
  readonly slow?: () => () => void;
  readonly #duty: Duty;
  #isOver = false;
  #report: "settled" | "held" | undefined;

  constructor(duty: Duty) {
    this.#duty = duty;
    if (duty.wantsHeld) this.held = () => this.#hold();
    if (duty.isHeldBefore) this.leftOpen = () => duty.leaveOpen();
    if (duty.fate?.slow !== undefined) this.slow = () => duty.slowSender() ?? (() => {});
  }

  settle(): void {
    if (this.#isOver) this.#duty.settle();
    else this.#report = "settled";
  }

  /** Gives the reports on. */
  end(): void {
    this.#isOver = true;
    if (this.#report === "settled") this.#duty.settle();
    else if (this.#report === "held") this.#duty.held();
  }

  #hold(): void {
    if (this.#isOver) this.#duty.held();
    else this.#report = "held";
  }
}

/**
 * Keeps a stanza unsettled until the function that is returned has been called, too. Nobody is told
 * before that another node holds it.
 */
export function keepOpen(envelope: Envelope): () => void {
  if (envelope.hasKeeper || envelope.fate === undefined) return () => {};
  const duty = new Duty();
  duty.adoptDuty(envelope);
  const kept = new KeptOpen(duty);
  envelope.fate = kept;
  return () => kept.end();
}

/** A loop: `Array.from` takes longer than all the rest. */
function copiesOf(envelope: Envelope, count: number, fate?: Fate): Envelope[] {
  const copies: Envelope[] = [];
  for (let i = 0; i < count; i++) {
    const copy = new Envelope(envelope, fate);
    copy.isCopy = true;
    copy.trace = envelope.trace;
    copies.push(copy);
  }
  return copies;
}
