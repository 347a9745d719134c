import { joinBytes } from "../../../src/base/mod.ts";
import { MESSAGE, MessageReader, packetsOf } from "./packets.ts";

/** Types of TLS records, and of messages of its handshake (RFC 5246). */
const [CHANGE_CIPHER, ALERT, HANDSHAKE, APPLICATION] = [20, 21, 22, 23] as const;
const SERVER_HELLO_DONE = 14;
const [RECORD_HEADER_BYTES, MESSAGE_HEADER_BYTES] = [5, 4];

/**
 * Makes TLS of connections whose handshake goes in messages of TDS (MS-TDS 3.2.5.2). The runtime's
 * own TLS server does the work, at a port of its own. It knows nothing of these messages.
 */
export class TlsPort implements Disposable {
  readonly #listener: Deno.TlsListener;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(cert: string, key: string) {
    this.#listener = Deno.listenTls({ hostname: "127.0.0.1", port: 0, cert, key });
  }

  /** Returns the decrypted side of a connection. */
  async accept(plain: Deno.Conn): Promise<Deno.Conn> {
    // One at a time, so that both ends belong together.
    const pair = this.#turn.then(async () => {
      const { port } = this.#listener.addr;
      const [outer, inner] = await Promise.all([
        Deno.connect({ hostname: "127.0.0.1", port }),
        this.#listener.accept(),
      ]);
      return { outer, inner };
    });
    this.#turn = pair.catch(() => {});
    const { outer, inner } = await pair;
    const handshake = { isOver: false };
    void forward(plain, outer, handshake);
    void answer(outer, plain, handshake);
    return inner;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
  }
}

/** Passes on what the client sends: out of its messages, and plainly once the handshake is over. */
async function forward(plain: Deno.Conn, outer: Deno.Conn, handshake: { isOver: boolean }) {
  const reader = new MessageReader();
  const buffer = new Uint8Array(65_536);
  try {
    for (;;) {
      const count = await plain.read(buffer);
      if (count === null) break;
      const chunk = buffer.slice(0, count);
      if (!handshake.isOver && chunk[0] === APPLICATION) handshake.isOver = true;
      if (handshake.isOver) await writeAll(outer, chunk);
      else for (const { data } of reader.push(chunk)) await writeAll(outer, data);
    }
  } catch {
    // one of them has ended
  }
  close(outer);
}

/** Passes on what the TLS server sends: each of its flights of the handshake in one message. */
async function answer(outer: Deno.Conn, plain: Deno.Conn, handshake: { isOver: boolean }) {
  const flights = new Flights();
  const buffer = new Uint8Array(65_536);
  try {
    for (;;) {
      const count = await outer.read(buffer);
      if (count === null) break;
      const chunk = buffer.slice(0, count);
      if (handshake.isOver) await writeAll(plain, chunk);
      else {
        for (const flight of flights.push(chunk)) {
          await writeAll(plain, packetsOf(MESSAGE.prelogin, flight));
        }
      }
    }
  } catch {
    // one of them has ended
  }
  close(plain);
}

/** Puts the records of TLS 1.2 together that a server sends at once. */
class Flights {
  #bytes = new Uint8Array();
  #flight: Uint8Array[] = [];
  #messages = new Uint8Array();
  #isCipherChanged = false;

  push(chunk: Uint8Array): readonly Uint8Array[] {
    this.#bytes = joinBytes([this.#bytes, chunk]);
    const flights: Uint8Array[] = [];
    for (;;) {
      if (this.#bytes.length < RECORD_HEADER_BYTES) break;
      const length = RECORD_HEADER_BYTES + ((this.#bytes[3]! << 8) | this.#bytes[4]!);
      if (this.#bytes.length < length) break;
      const record = this.#bytes.slice(0, length);
      this.#bytes = this.#bytes.slice(length);
      this.#flight.push(record);
      if (!this.#isLast(record)) continue;
      flights.push(joinBytes(this.#flight));
      this.#flight = [];
    }
    return flights;
  }

  #isLast(record: Uint8Array): boolean {
    const type = record[0];
    if (type === ALERT) return true;
    if (type === CHANGE_CIPHER) this.#isCipherChanged = true;
    if (type !== HANDSHAKE) return false;
    if (this.#isCipherChanged) return true; // it is encrypted: the end of the handshake
    this.#messages = joinBytes([this.#messages, record.subarray(RECORD_HEADER_BYTES)]);
    let isDone = false;
    while (this.#messages.length >= MESSAGE_HEADER_BYTES) {
      const [kind, high, middle, low] = this.#messages;
      const length = MESSAGE_HEADER_BYTES + ((high! << 16) | (middle! << 8) | low!);
      if (this.#messages.length < length) break;
      isDone ||= kind === SERVER_HELLO_DONE;
      this.#messages = this.#messages.slice(length);
    }
    return isDone;
  }
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) {
    sent += await connection.write(bytes.subarray(sent));
  }
}

function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // it has ended already
  }
}
