import type { Split } from "./counts.ts";
import { type Flow, IN_ARCHIVE, WRITTEN_AGAIN } from "./flow.ts";
import type { Ledger, StanzaMark } from "./ledger.ts";
import { split } from "./side_verdict.ts";

/** Copies of the clients' messages in the archives of their accounts. */
export interface ArchiveBalance {
  /** Copies that archives owe: one to the sender and one to the recipient of each accepted message. */
  readonly due: number;
  /** Copies that are there, of those that are due. */
  readonly kept: number;
  /** Copies that are missing, of those that are due. */
  readonly lost: Split;
  /** Copies beyond the first. Those of a message that its client wrote again are allowed. */
  readonly doubled: Split;
  /** Messages that nobody sent like this, or that are in the archive of somebody else. */
  readonly strays: number;
  /** The first few forbidden cases. */
  readonly examples: readonly string[];
}

const MAX_EXAMPLES = 8;
/** More stanzas than a flow has. */
const FLOW_STRIDE = 2 ** 26;

/** Account of the copies that archives have. A reader reports each copy once. */
export class ArchiveAccount {
  readonly #ledger: Ledger;
  /** Number of copies in the archive of an account, by the account's bare JID and by message. */
  readonly #copies = new Map<string, Map<number, number>>();
  #strays = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Notes a copy in the archive of `owner`, a bare JID. */
  stored(owner: string, { flow: number, seq }: StanzaMark): void {
    const flow = this.#ledger.flows[number];
    const isKnown = flow !== undefined && seq < flow.sent && flow.kindOf(seq) === "message" &&
      (bareOf(flow.sender) === owner || bareOf(flow.recipient) === owner);
    if (!isKnown) return this.stray();
    if (bareOf(flow.recipient) === owner) flow.mark(seq, IN_ARCHIVE);
    let copies = this.#copies.get(owner);
    if (copies === undefined) this.#copies.set(owner, copies = new Map());
    const key = keyOf(flow, seq);
    copies.set(key, (copies.get(key) ?? 0) + 1);
  }

  /** Notes a message in an archive that nobody has sent like this. */
  stray(): void {
    this.#strays++;
  }

  /**
   * Counts what archives owe and have of the messages of the ledger.
   *
   * @param mayMiss true when the archive of a sender may miss what it sent at that time
   */
  balance(
    mayMiss: (sender: string, sentAtMs: number) => boolean = () => false,
  ): ArchiveBalance {
    const count = { due: 0, kept: 0 };
    const lost = { allowed: 0, forbidden: 0 };
    const doubled = { allowed: 0, forbidden: 0 };
    const examples: string[] = [];
    const show = (what: string, owner: string, flow: Flow, seq: number) => {
      if (examples.length >= MAX_EXAMPLES) return;
      const fate = flow.arrivals(seq) > 0 ? "delivered" : "not delivered";
      examples.push(
        `${what} in the archive of ${owner}: L${flow.number}.${seq} ${flow.sender}→${flow.to}, ` +
          `sent at ${Math.round(flow.sentAtMs(seq))}, ${fate}`,
      );
    };
    for (const flow of this.#ledger.flows) {
      const sender = bareOf(flow.sender);
      const owners = [sender, bareOf(flow.recipient)];
      for (let seq = 0; seq < flow.sent; seq++) {
        if (flow.kindOf(seq) !== "message") continue;
        const isAccepted = flow.arrivals(seq) > 0 || flow.has(seq, IN_ARCHIVE);
        for (const owner of owners) {
          const copies = this.#copies.get(owner)?.get(keyOf(flow, seq)) ?? 0;
          if (isAccepted) {
            count.due++;
            if (copies > 0) count.kept++;
            else if (owner === sender && mayMiss(flow.sender, flow.sentAtMs(seq))) lost.allowed++;
            else {
              lost.forbidden++;
              show("missing", owner, flow, seq);
            }
          }
          if (copies < 2) continue;
          if (flow.has(seq, WRITTEN_AGAIN)) doubled.allowed += copies - 1;
          else {
            doubled.forbidden += copies - 1;
            show(`${copies} times`, owner, flow, seq);
          }
        }
      }
    }
    return { ...count, lost, doubled, strays: this.#strays, examples };
  }
}

/** Lists what is wrong with the archives. */
export function archiveFindings(balance: ArchiveBalance): readonly string[] {
  const none = (count: number, what: string) => count > 0 ? [`${count} ${what}`] : [];
  return [
    ...none(balance.lost.forbidden, "messages missing in archives"),
    ...none(balance.doubled.forbidden, "messages doubled in archives"),
    ...none(balance.strays, "strays in archives"),
    ...(balance.due === 0 ? ["no archive owed anything"] : []),
  ];
}

/** The numbers of the archives in one line. */
export function archiveLine({ due, kept, lost, doubled, strays }: ArchiveBalance): string {
  return [
    `archives: ${due} due`,
    `${kept} kept`,
    split("lost", lost),
    split("doubled", doubled),
    `${strays} strays`,
  ].join(", ");
}

function keyOf(flow: Flow, seq: number): number {
  return flow.number * FLOW_STRIDE + seq;
}

function bareOf(jid: string): string {
  const at = jid.indexOf("/");
  return at < 0 ? jid : jid.slice(0, at);
}
