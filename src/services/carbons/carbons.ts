import type { Clock } from "../../base/mod.ts";
import type { Counter, Metrics } from "../../observe/mod.ts";
import type { Jid, LocalSession, Stanza } from "../../xmpp/mod.ts";
import { CARBONS_NAMESPACE, FullJid, leastPriority, readdress } from "../../xmpp/mod.ts";
import { AnswerableMessages } from "./answerable_messages.ts";
import { BroughtCarbon, carbonOf, errorInCarbon, isEligible, recipientInSent } from "./carbon.ts";
import type { CarbonDirection } from "./carbon.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";

/** A session that may get carbons. */
export type CarbonSession = Pick<LocalSession, "jid" | "priority" | "send" | "hasCarbons">;

/** Objects behind carbons. */
export interface CarbonsDeps {
  /** True when the accounts of a host have carbons. */
  isOn(host: string): boolean;
  /** False while no session of this node has turned carbons on. */
  isUsedHere(): boolean;
  /** Sessions of an account at this node. */
  ofAccount(account: string): readonly CarbonSession[];
  /** True when the owner of a session does not want a message, nor a copy of it. @default never */
  refuses?(session: FullJid, stanza: Stanza): boolean;
  /** False when the account is known to have no sessions at other nodes. */
  mayBeElsewhere(account: Jid): boolean;
  /**
   * Sends a carbon to all other nodes, in all datacenters, that have sessions of its account.
   * @param session that has got the message
   */
  sendElsewhere(carbon: Stanza, session: Jid): void;
  /**
   * Makes those nodes get the carbon of a message that a session here has just sent.
   * @param sequence of the message
   * @param wrapped returns the carbon for nodes that do not make it themselves
   */
  sendSentElsewhere(
    message: Stanza,
    sequence: number,
    wrapped: () => Stanza | undefined,
  ): void;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/**
 * Milliseconds for which a sender is taken to be its account's only session. A second session at a
 * node that tells of it is known at once; only external replication does not tell.
 */
const LONE_MS = 5_000;

/**
 * Message carbons (XEP-0280): a message that one session of an account sends or receives goes to
 * its other sessions too, if they have asked for it. Each node gives its own sessions what they are
 * due. What an account receives is copied to its nodes by routing, what it sends by this class.
 *
 * An error is copied when it answers a message that was. Only the node of the session that has sent
 * the message knows that, so this class copies it too.
 */
export class Carbons {
  readonly #deps: CarbonsDeps;
  readonly #given: Readonly<Record<CarbonDirection, Counter>>;
  readonly #answerable = new AnswerableMessages();

  constructor(deps: CarbonsDeps) {
    this.#deps = deps;
    const given = (direction: CarbonDirection) =>
      deps.metrics.counter({
        name: "causeway_carbons_total",
        help: "Carbons given to sessions of this node, of messages their account sent or received",
        labels: { direction },
      });
    this.#given = { sent: given("sent"), received: given("received") };
  }

  /** The services with which a client turns carbons on and off (XEP-0280 §4). */
  get services(): readonly IqService[] {
    return [new CarbonSwitch("enable"), new CarbonSwitch("disable")];
  }

  /**
   * True for a message of which other sessions of its recipient get carbons. What one session of an account
   * writes to another one is copied as sent.
   */
  copies(stanza: Stanza): boolean {
    const { from, to } = stanza;
    return this.#deps.isOn(to.domainpart) && (to === to.bare || from.bare.text !== to.bare.text) &&
      isEligible(stanza, "received");
  }

  /**
   * Gives carbons of a message that a session of this node has sent.
   * @param sender remembers that its account has no other session
   * @param sequence of the message, which the router has accepted within this event-loop turn
   */
  sent(stanza: Stanza, sender: { loneUntilMs?: number }, sequence: number): void {
    const nowMs = this.#deps.clock.monotonicMs();
    if (sender.loneUntilMs !== undefined && nowMs < sender.loneUntilMs) return;
    const { from, to } = stanza;
    const account = from.bare;
    if (!this.#deps.isOn(account.domainpart)) return;
    const here = this.#deps.ofAccount(account.text);
    const isElsewhere = this.#deps.mayBeElsewhere(account);
    if (here.length < 2 && !isElsewhere) {
      sender.loneUntilMs = nowMs + LONE_MS;
      return;
    }
    // A note to the account itself is copied as received, to those sessions that do not get it as it is.
    if (to.text === account.text) return;
    const takers = here.filter((session) =>
      session.hasCarbons && session.jid.text !== from.text && session.jid.text !== to.text
    );
    if ((takers.length === 0 && !isElsewhere) || !isEligible(stanza, "sent")) return;
    const carbon = takers.length === 0 ? undefined : carbonOf("sent", stanza, account);
    if (takers.length > 0 && carbon === undefined) return;
    this.#answerable.add(stanza);
    if (carbon !== undefined) this.#give(carbon, takers, "sent");
    if (!isElsewhere) return;
    const wrapped = () => carbon ?? carbonOf("sent", stanza, account);
    this.#deps.sendSentElsewhere(stanza, sequence, wrapped);
  }

  /**
   * Gives carbons of a message that this node has delivered to those sessions of the account here
   * that did not get it themselves.
   * @returns true when there was one
   */
  received(stanza: Stanza): boolean {
    if (stanza.type === "error") return this.#errorReceived(stanza);
    if (!this.#deps.isUsedHere()) return false;
    const { from, to } = stanza;
    const sessions = this.#deps.ofAccount(to.bare.text);
    if (sessions.length < 2 && sessions[0]?.jid.text === to.text) return false;
    if (!sessions.some(({ hasCarbons }) => hasCarbons)) return false;
    const isHere = to instanceof FullJid && sessions.some(({ jid }) => jid.text === to.text);
    const least = isHere ? Infinity : leastPriority(stanza, sessions);
    const takers = sessions.filter(({ hasCarbons, jid, priority }) =>
      hasCarbons && jid.text !== to.text && jid.text !== from.text &&
      (priority === undefined || priority < least)
    );
    return takers.length > 0 && this.copies(stanza) && this.#wrapAndGive(stanza, takers);
  }

  /**
   * Gives the carbon that another node has sent, or a carbon of the message that it has delivered,
   * to the account's sessions here. That node may have other modules, or lie.
   * @returns true when there was one
   */
  told(stanza: Stanza): boolean {
    const { from, to } = stanza;
    // A session that has just come here from another node gets the message itself by way of that node.
    const takers = this.#deps.ofAccount(to.bare.text).filter(({ hasCarbons, jid }) =>
      hasCarbons && jid.text !== from.text && jid.text !== to.text
    );
    if (takers.length === 0) return false;
    if (from.text !== to.text) return this.copies(stanza) && this.#wrapAndGive(stanza, takers);
    if (stanza.type === "error") {
      const error = this.#deps.isOn(to.domainpart) ? errorInCarbon(stanza) : undefined;
      return error !== undefined && this.#giveUnlessRefused(stanza, takers, error);
    }
    if (to !== to.bare || !this.#deps.isOn(to.domainpart)) return false;
    const recipient = recipientInSent(stanza);
    if (recipient === undefined) return false;
    // A device of the account that the message is for gets it as it is.
    const others = takers.filter(({ jid }) => jid.text !== recipient.text);
    return this.#give(stanza, others, "sent");
  }

  /** Gives carbons of an error that a session here has got, if it answers a message that was copied. */
  #errorReceived(error: Stanza): boolean {
    const account = error.to.bare;
    if (error.to === account || !this.#answerable.take(error)) return false;
    const carbon = carbonOf("received", error, account);
    if (carbon === undefined) return false;
    if (this.#deps.mayBeElsewhere(account)) this.#deps.sendElsewhere(carbon, error.to);
    const takers = this.#deps.ofAccount(account.text).filter(({ hasCarbons, jid }) =>
      hasCarbons && jid.text !== error.to.text
    );
    return this.#giveUnlessRefused(carbon, takers, error);
  }

  #wrapAndGive(stanza: Stanza, takers: readonly CarbonSession[]): boolean {
    const carbon = carbonOf("received", stanza, stanza.to.bare);
    return carbon !== undefined && this.#giveUnlessRefused(carbon, takers, stanza);
  }

  /** Gives the carbon of a received stanza to those sessions whose owners want that stanza. */
  #giveUnlessRefused(
    carbon: Stanza,
    all: readonly CarbonSession[],
    wrapped: Stanza,
  ): boolean {
    const { refuses } = this.#deps;
    const takers = refuses === undefined ? all : all.filter(({ jid }) => !refuses(jid, wrapped));
    return this.#give(carbon, takers, "received");
  }

  /**
   * Gives a carbon to sessions; those that read too slowly miss it.
   * @returns true when one has taken it
   */
  #give(carbon: Stanza, takers: readonly CarbonSession[], direction: CarbonDirection): boolean {
    let given = 0;
    for (const session of takers) {
      const addressed = carbon instanceof BroughtCarbon
        ? carbon.for(session.jid)
        : readdress(carbon, session.jid);
      if (session.send(addressed)) given++;
    }
    if (given > 0) this.#given[direction].inc(given);
    return given > 0;
  }
}

/** Turns carbons on or off for the client that asks. */
class CarbonSwitch implements IqService {
  readonly namespace = CARBONS_NAMESPACE;
  readonly type = "set";
  readonly module = "mod_carboncopy";
  readonly targets = ["account", "host"] as const;
  readonly features = [CARBONS_NAMESPACE];
  readonly name: "enable" | "disable";

  constructor(name: "enable" | "disable") {
    this.name = name;
  }

  answer({ client }: IqRequest): IqAnswer {
    if (client === undefined) return { error: "not-allowed" };
    client.hasCarbons = this.name === "enable";
    return "empty";
  }
}
