import { liveMs } from "../live_clock.ts";
import {
  mayBeLate,
  ON_ITS_WAY_MS,
  UNACKNOWLEDGED_MS,
  UNNOTICED_MS,
  UNTOLD_MS,
} from "./allowances.ts";
import { type Balance, balanceOf } from "./balance.ts";
import type { BalanceOptions } from "./counts.ts";
import { type CarbonDirection, DeviceAccount } from "./device_account.ts";
import { deviceBalanceOf } from "./device_balance.ts";
import {
  Flow,
  MAY_BE_DOUBLE,
  MAY_BE_UNKNOWN,
  MAY_BE_UNTOLD,
  SENT_AGAIN,
  type StanzaKind,
  WRITTEN_AGAIN,
} from "./flow.ts";
import type { Login, LostConnection } from "./logins.ts";
import type { Span } from "./span.ts";

/** Identity of a stanza, known wherever it turns up. */
export interface StanzaMark {
  readonly flow: number;
  readonly seq: number;
}

/**
 * Account of every stanza that clients sent, and of its fate. Clients report what they do and see.
 * In the end each stanza was delivered once, was answered by an error, or is unknown.
 */
export class Ledger {
  readonly #flows: Flow[] = [];
  readonly #nowMs: () => number;
  readonly #conditions = new Map<string, number>();
  /**
   * Clients without stream management that have not come back yet, with the time when their
   * connection broke.
   */
  readonly #brokenAtMs = new Map<string, number>();
  readonly #devices: DeviceAccount;
  #strays = 0;

  constructor(nowMs: () => number = liveMs) {
    this.#nowMs = nowMs;
    this.#devices = new DeviceAccount(nowMs);
  }

  get flows(): readonly Flow[] {
    return this.#flows;
  }

  /** Stanzas sent so far. */
  get sent(): number {
    return this.#flows.reduce((sum, flow) => sum + flow.sent, 0);
  }

  /** A new numbered row of stanzas from one client to another, at the address `to`. */
  open(sender: string, recipient: string, to = recipient): Flow {
    const flow = new Flow(this.#flows.length, sender, recipient, to);
    this.#flows.push(flow);
    return flow;
  }

  /**
   * Adds a further device of the account of `main`. It gets carbons of all messages of `main`, and
   * all messages to the bare JID.
   */
  addDevice(device: string, main: string): void {
    this.#devices.add(device, main);
  }

  /** True when the account of `main` has a further device. */
  hasDevice(main: string): boolean {
    return this.#devices.deviceOf(main) !== undefined;
  }

  /** Notes that `flow` sends one more; gives its number. */
  sending(flow: Flow, kind: StanzaKind = "message"): number {
    return flow.send(this.#nowMs(), kind);
  }

  /** Notes that one of `flow` was due and could not even be sent: its client had no connection. */
  skipped(flow: Flow): void {
    flow.skip(this.#nowMs());
  }

  /** Notes what `recipient` has received. */
  arrived(recipient: string, { flow: number, seq }: StanzaMark): void {
    const flow = this.#flows[number];
    if (flow !== undefined && this.#devices.has(recipient)) {
      if (!this.#devices.arrived(recipient, "bare", { flow, seq })) this.#strays++;
    } else if (flow === undefined || flow.recipient !== recipient || seq >= flow.sent) {
      this.#strays++;
    } else flow.arrive(seq, this.#nowMs());
  }

  /** Notes that `recipient` was told that `sender` is no longer available. */
  withdrawn(recipient: string, sender: string): void {
    for (const flow of this.#flows) {
      if (flow.recipient === recipient && flow.sender === sender) flow.withdrawn(this.#nowMs());
    }
  }

  /** Notes a carbon that `device` has received. */
  carbonArrived(
    device: string,
    direction: CarbonDirection,
    { flow: number, seq }: StanzaMark,
  ): void {
    const flow = this.#flows[number];
    const isDue = flow !== undefined && this.#devices.arrived(device, direction, { flow, seq });
    if (!isDue) this.#strays++;
  }

  /** Notes an error that `sender` has received. */
  answered(
    sender: string,
    { flow: number, seq }: StanzaMark,
    condition = "undefined-condition",
  ): void {
    this.#conditions.set(condition, (this.#conditions.get(condition) ?? 0) + 1);
    const flow = this.#flows[number];
    if (flow === undefined || flow.sender !== sender || seq >= flow.sent) this.#strays++;
    else flow.answer(seq, this.#nowMs());
  }

  /** Notes the result of a request that `sender` has received. */
  resulted(sender: string, { flow: number, seq }: StanzaMark): void {
    const flow = this.#flows[number];
    const isDue = flow !== undefined && flow.sender === sender && seq < flow.sent &&
      flow.kindOf(seq) === "iq" && flow.arrivals(seq) > 0;
    if (isDue) flow.result(seq);
    else this.#strays++;
  }

  /** Notes something that nobody has sent like this. */
  stray(): void {
    this.#strays++;
  }

  /**
   * Notes that all nodes know of the first logins of all clients. Devices may have missed what was
   * sent before.
   */
  everyoneIsKnown(): void {
    this.#devices.everyoneIsKnown();
  }

  /** Number of messages sent since then that have not come to every device that is due them. */
  missingAtDevices(sinceMs: number): number {
    return this.#devices.missing(this.#flows, sinceMs);
  }

  /** Notes that `client` takes nothing more, because it logs out. */
  left(client: string): void {
    this.#devices.left(client);
  }

  /** Notes that `client` has lost its connection, with what was on it. */
  connectionLost(client: string, lost: LostConnection): void {
    this.#devices.connectionLost(client, lost);
    const { isManaged, brokeAtMs = this.#nowMs(), killedAtMs } = lost;
    const unreadMs = Math.min(
      brokeAtMs,
      killedAtMs ?? Infinity,
      lost.unreadSinceMs ?? Infinity,
    );
    const fromClient = Math.min(unreadMs, lost.stoppedAtMs ?? Infinity) - ON_ITS_WAY_MS;
    const toClient = unreadMs - ON_ITS_WAY_MS;
    // A process that has ended writes nothing any more.
    const isNodeThere = killedAtMs === undefined && lost.stoppedAtMs === undefined;
    if (!isManaged && isNodeThere) this.#brokenAtMs.set(client, brokeAtMs);
    else this.#brokenAtMs.delete(client);
    for (const flow of this.#flows) {
      const isRecipient = flow.recipient === client;
      if (!isRecipient && flow.sender !== client) continue;
      flow.broke(brokeAtMs);
      if (!isManaged) {
        const fromMs = isRecipient ? toClient : fromClient;
        markOnItsWay(flow, { fromMs, toMs: brokeAtMs });
      }
      if (killedAtMs === undefined || !isRecipient) continue;
      markSince(flow, killedAtMs - (isManaged ? UNACKNOWLEDGED_MS : UNTOLD_MS), MAY_BE_DOUBLE);
    }
  }

  /**
   * Notes that a node is being killed since `atMs`: what others have just delivered, or are about to, may
   * have come through it, and it could not tell any more. Should its recipient log in elsewhere, it
   * may come there again.
   */
  nodeKilled(atMs: number = this.#nowMs()): void {
    this.#devices.nodeKilled(atMs);
    const sinceMs = atMs - UNACKNOWLEDGED_MS;
    for (const flow of this.#flows) {
      markSince(flow, sinceMs, MAY_BE_UNTOLD);
      for (let seq = flow.sent - 1; seq >= 0 && flow.sentAtMs(seq) >= sinceMs; seq--) {
        if (flow.arrivals(seq) === 0) flow.mark(seq, MAY_BE_UNTOLD);
      }
    }
  }

  /** Notes a login of `client` that was not its first. */
  loggedIn(client: string, login: Login): void {
    this.#devices.loggedIn(client, login);
    const { isOtherNode, isOtherDatacenter, isResumed = false } = login;
    const fromMs = this.#brokenAtMs.get(client);
    this.#brokenAtMs.delete(client);
    for (const flow of this.#flows) {
      if (flow.recipient === client) {
        if (fromMs !== undefined) {
          // A login at the same node ends the session of the broken connection. Another node does not.
          const toMs = fromMs + UNNOTICED_MS;
          flow.unnoticed({ fromMs, toMs: isOtherNode ? toMs : Math.min(toMs, login.toMs) });
        }
        if (isOtherNode) flow.recipientChangedNode(login, isResumed);
        if (isOtherDatacenter) flow.recipientMoved(login);
      } else if (flow.sender === client && isOtherNode) flow.senderMoved(login);
    }
  }

  /** Notes that `sender`, whose node was killed, sends once more what that had not said to have handled. */
  sentAgain(sender: string, { flow: number, seq }: StanzaMark): void {
    const flow = this.#flows[number];
    if (flow === undefined || flow.sender !== sender || seq >= flow.sent) {
      throw new RangeError(`${sender} cannot send again ${number}.${seq}: it never sent it`);
    }
    flow.mark(seq, SENT_AGAIN);
  }

  /** Notes that a client writes a stanza once more, on a new stream: archives may have it twice. */
  writtenAgain({ flow, seq }: StanzaMark): void {
    this.#flows[flow]?.mark(seq, WRITTEN_AGAIN);
  }

  /** Number of stanzas with a forbidden unknown fate. */
  unsettled(): number {
    let count = 0;
    for (const flow of this.#flows) {
      for (let seq = flow.firstOpen(); seq < flow.sent; seq++) {
        if (flow.isOpen(seq) && !flow.mayBeUnknown(seq)) count++;
      }
    }
    return count;
  }

  /** Counts everything up. */
  balance(options: BalanceOptions): Balance {
    return balanceOf(this.#flows, {
      strays: this.#strays,
      conditions: Object.fromEntries(this.#conditions),
      devices: deviceBalanceOf(this.#flows, this.#devices, options),
    }, options);
  }
}

/**
 * Marks stanzas that were sent in that time and have no fate: they may have been lost with the
 * connection.
 */
function markOnItsWay(flow: Flow, { fromMs, toMs }: Span): void {
  for (let seq = flow.firstOpen(); seq < flow.sent && flow.sentAtMs(seq) <= toMs; seq++) {
    if (!flow.isOpen(seq) || flow.sentAtMs(seq) < fromMs) continue;
    // A later stanza on the same connection has arrived, so this one is no longer on that
    // connection.
    const isOvertaken = seq < flow.highestArrived &&
      !mayBeLate(flow, seq, { atMs: toMs, before: Infinity });
    if (!isOvertaken) flow.mark(seq, MAY_BE_UNKNOWN);
  }
}

/** Marks the stanzas that arrived after `sinceMs`. */
function markSince(flow: Flow, sinceMs: number, mark: number): void {
  // arrivals are roughly in order: one far older than the limit ends the search
  for (let seq = flow.sent - 1; seq >= 0; seq--) {
    if (flow.arrivals(seq) === 0) continue;
    if (flow.lastArrivedAtMs(seq) >= sinceMs) flow.mark(seq, mark);
    else if (flow.sentAtMs(seq) < sinceMs - SEARCH_BACK_MS) return;
  }
}

/** Longest time that a stanza can be on its way. */
const SEARCH_BACK_MS = 120_000;
