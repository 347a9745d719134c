import type { PostedMessage } from "./live_rooms.ts";

/** Messages of all rooms that wait for the database. */
const MAX_WAITING = 1_000;
/** Their characters. */
const MAX_WAITING_LENGTH = 8_388_608;
/** Messages of one person that wait for the database. */
const MAX_WAITING_PER_SENDER = 50;

/** A message that waits for the database, with its duty. */
export interface WaitingMessage<Taken> {
  readonly taken: Taken;
  /** Bare JID of its sender. */
  readonly sender: string;
  readonly message: PostedMessage;
}

/**
 * Messages that occupants have got and the database has not, by room and in their order. They are
 * neither numbered nor settled yet.
 */
export class WaitingMessages<Taken> {
  readonly #byRoom = new Map<string, WaitingMessage<Taken>[]>();
  readonly #bySender = new Map<string, number>();
  #count = 0;
  #length = 0;

  get size(): number {
    return this.#count;
  }

  get rooms(): readonly string[] {
    return [...this.#byRoom.keys()];
  }

  isWaiting(room: string): boolean {
    return this.#byRoom.has(room);
  }

  /** Adds a message; false when there is no place for it. */
  add(room: string, waiting: WaitingMessage<Taken>): boolean {
    const { sender, message: { text } } = waiting;
    const own = this.#bySender.get(sender) ?? 0;
    const hasPlace = this.#count < MAX_WAITING && own < MAX_WAITING_PER_SENDER &&
      this.#length + text.length <= MAX_WAITING_LENGTH;
    if (!hasPlace) return false;
    const queue = this.#byRoom.get(room);
    if (queue === undefined) this.#byRoom.set(room, [waiting]);
    else queue.push(waiting);
    this.#bySender.set(sender, own + 1);
    this.#count++;
    this.#length += text.length;
    return true;
  }

  first(room: string): WaitingMessage<Taken> | undefined {
    return this.#byRoom.get(room)?.[0];
  }

  /** Removes the first message of a room. */
  shift(room: string): void {
    const queue = this.#byRoom.get(room);
    const first = queue?.shift();
    if (queue === undefined || first === undefined) return;
    if (queue.length === 0) this.#byRoom.delete(room);
    const left = this.#bySender.get(first.sender)! - 1; // `add` has set it
    if (left === 0) this.#bySender.delete(first.sender);
    else this.#bySender.set(first.sender, left);
    this.#count--;
    this.#length -= first.message.text.length;
  }
}
