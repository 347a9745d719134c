import { CAME_TO_DEVICE, type Flow } from "./flow.ts";
import { Interruptions } from "./interruptions.ts";
import type { Login, LostConnection } from "./logins.ts";

/** Direction of a carbon, as the account of the device sees it. */
export type CarbonDirection = "sent" | "received";

/**
 * Way in which a further device gets a message: as a carbon of what the main device sent or
 * received, or as it is, because it is to the bare JID.
 */
export type DeviceWay = CarbonDirection | "bare";

const FIRST_CAPACITY = 256;
const MAX_COUNT = 255;

/** The messages of one flow that a further device has got in one way. */
export class DeviceRow {
  readonly device: string;
  readonly way: DeviceWay;
  #arrivals = new Uint8Array(FIRST_CAPACITY);
  #cameAtMs = new Float64Array(FIRST_CAPACITY);
  #highest = -1;
  /** Messages that came behind a later one of their flow. */
  readonly late: number[] = [];
  /** Messages that came once more, with the time. */
  readonly again: { readonly seq: number; readonly atMs: number }[] = [];

  constructor(device: string, way: DeviceWay) {
    this.device = device;
    this.way = way;
  }

  /** Notes that message `seq` has come. */
  come(seq: number, nowMs: number): void {
    while (seq >= this.#arrivals.length) this.#grow();
    const before = this.#arrivals[seq]!;
    this.#arrivals[seq] = Math.min(MAX_COUNT, before + 1);
    if (before > 0) {
      this.again.push({ seq, atMs: nowMs });
      return;
    }
    this.#cameAtMs[seq] = nowMs;
    if (seq < this.#highest) this.late.push(seq);
    else this.#highest = seq;
  }

  hasCome(seq: number): boolean {
    return (this.#arrivals[seq] ?? 0) > 0;
  }

  /** Time of the first arrival. Valid only if there was one. */
  cameAtMs(seq: number): number {
    return this.#cameAtMs[seq]!;
  }

  #grow(): void {
    const length = 2 * this.#arrivals.length;
    const [arrivals, cameAtMs] = [new Uint8Array(length), new Float64Array(length)];
    arrivals.set(this.#arrivals);
    cameAtMs.set(this.#cameAtMs);
    [this.#arrivals, this.#cameAtMs] = [arrivals, cameAtMs];
  }
}

/** Account of what further devices get of the messages that their main device sends and gets. */
export class DeviceAccount {
  readonly #nowMs: () => number;
  /** Main device by further device. One further device for each main one. */
  readonly #mains = new Map<string, string>();
  readonly #devices = new Map<string, string>();
  readonly #interruptions = new Map<string, Interruptions>();
  /** Rows by device, way and flow. */
  readonly #rows = new Map<string, DeviceRow>();
  readonly #killsMs: number[] = [];

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Adds a further device of the account of `main`; it is about to log in. */
  add(device: string, main: string): void {
    if (this.#devices.has(main)) throw new RangeError(`${main} has a further device already`);
    this.#mains.set(device, main);
    this.#devices.set(main, device);
  }

  has(client: string): boolean {
    return this.#mains.has(client);
  }

  /** Returns the further device of a main one; undefined if there is none. */
  deviceOf(main: string): string | undefined {
    return this.#devices.get(main);
  }

  /** Killing a node makes repeats possible. */
  nodeKilled(atMs: number): void {
    this.#killsMs.push(atMs);
  }

  get killsMs(): readonly number[] {
    return this.#killsMs;
  }

  /** Notes that all nodes know of the first logins of all clients. */
  everyoneIsKnown(): void {
    for (const client of [...this.#mains.keys(), ...this.#devices.keys()]) {
      this.#of(client).known(this.#nowMs());
    }
  }

  /** Returns how many messages that `flows` have sent since then have not come to each device. */
  missing(flows: readonly Flow[], sinceMs: number): number {
    let missing = 0;
    for (const flow of flows) {
      for (const row of this.rowsOf(flow)) {
        for (let seq = flow.sent - 1; seq >= 0 && flow.sentAtMs(seq) >= sinceMs; seq--) {
          if (flow.kindOf(seq) !== "message") continue;
          if (!row.hasCome(seq)) missing++;
          if (row.way === "bare" && flow.arrivals(seq) === 0) missing++;
        }
      }
    }
    return missing;
  }

  /** Notes that a client takes nothing more, because it leaves in order. */
  left(client: string): void {
    this.#of(client).gone(this.#nowMs());
  }

  connectionLost(client: string, lost: LostConnection): void {
    const { brokeAtMs = this.#nowMs(), killedAtMs, unreadSinceMs, stoppedAtMs } = lost;
    this.#of(client).gone(
      Math.min(
        brokeAtMs,
        killedAtMs ?? Infinity,
        unreadSinceMs ?? Infinity,
        stoppedAtMs ?? Infinity,
      ),
    );
  }

  loggedIn(client: string, login: Login): void {
    this.#of(client).back(login);
  }

  /**
   * Notes that a device got a message of `flow`.
   * @returns false if it should not have
   */
  arrived(device: string, way: DeviceWay, { flow, seq }: {
    readonly flow: Flow;
    readonly seq: number;
  }): boolean {
    if (!this.#isDue(device, way, flow) || seq >= flow.sent || flow.kindOf(seq) !== "message") {
      return false;
    }
    this.#row(device, way, flow).come(seq, this.#nowMs());
    if (way === "bare") flow.mark(seq, CAME_TO_DEVICE);
    return true;
  }

  /** The rows that are due of `flow`, even where nothing has come. */
  rowsOf(flow: Flow): readonly DeviceRow[] {
    const rows: DeviceRow[] = [];
    const ofSender = this.#devices.get(flow.sender);
    if (ofSender !== undefined) rows.push(this.#row(ofSender, "sent", flow));
    const ofRecipient = this.#devices.get(flow.recipient);
    if (ofRecipient !== undefined) {
      rows.push(this.#row(ofRecipient, flow.to === flow.recipient ? "received" : "bare", flow));
    }
    return rows;
  }

  /** Times in which a client had no session that all nodes knew. */
  interruptionsOf(client: string): Interruptions {
    return this.#of(client);
  }

  #of(client: string): Interruptions {
    let found = this.#interruptions.get(client);
    if (found === undefined) {
      found = new Interruptions();
      this.#interruptions.set(client, found);
    }
    return found;
  }

  #isDue(device: string, way: DeviceWay, flow: Flow): boolean {
    const main = this.#mains.get(device);
    if (main === undefined) return false;
    if (way === "sent") return flow.sender === main;
    return flow.recipient === main && (flow.to === flow.recipient) === (way === "received");
  }

  #row(device: string, way: DeviceWay, flow: Flow): DeviceRow {
    const key = `${device} ${way} ${flow.number}`;
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = new DeviceRow(device, way);
      this.#rows.set(key, row);
    }
    return row;
  }
}
