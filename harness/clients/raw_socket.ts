import { withDeadline } from "../deadline.ts";
import { PATIENCE_MS } from "../until.ts";

/** Trust settings of a raw client for a server's certificate. */
export interface RawTlsOptions {
  /** PEM certificates of the authorities to trust; nothing else is. */
  readonly caCerts: readonly string[];
  /** The name that the certificate must bear, sent as SNI too. */
  readonly serverName: string;
  /** Application protocols to offer (ALPN). @default none */
  readonly alpnProtocols?: readonly string[];
}

/** Address and TLS options of a raw client's server. */
export interface RawSocketOptions {
  /** @default "127.0.0.1" */
  readonly host?: string;
  readonly port: number;
  /** Direct TLS from the first byte. */
  readonly tls?: RawTlsOptions;
  /** Bytes that one read takes at most: fewer where thousands of clients share a process. @default 65536 */
  readonly readBytes?: number;
}

const READ_BYTES = 65_536;

/**
 * A socket that a test or a load generator plays by hand: what it sends is exactly what the peer
 * gets. It reads only while `readUntil`, `readToEnd` or `consume` waits, so that leaving it alone
 * is what a client does whose machine has gone to sleep.
 */
export class RawSocket implements AsyncDisposable {
  #connection: Deno.TcpConn | Deno.TlsConn;
  #decoder = new TextDecoder();
  #text = "";
  #pendingRead: Promise<number | null> | undefined;
  #hasEnded = false;
  #isClosed = false;
  readonly #buffer: Uint8Array;

  private constructor(connection: Deno.TcpConn, readBytes: number) {
    this.#connection = connection;
    this.#buffer = new Uint8Array(readBytes);
  }

  static async connect(options: RawSocketOptions): Promise<RawSocket> {
    const connection = await Deno.connect({
      hostname: options.host ?? "127.0.0.1",
      port: options.port,
    });
    connection.setNoDelay();
    const socket = new RawSocket(connection, options.readBytes ?? READ_BYTES);
    if (options.tls === undefined) return socket;
    try {
      await socket.startTls(options.tls);
    } catch (thrown) {
      await socket.close();
      throw thrown;
    }
    return socket;
  }

  /** True once the peer has closed or the connection failed. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Writes all of `data`, which must not change before; rejects when the connection is gone. */
  async send(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    for (let sent = 0; sent < bytes.length;) {
      sent += await this.#connection.write(sent === 0 ? bytes : bytes.subarray(sent));
    }
  }

  /**
   * Takes the text up to and including `marker`; what follows stays for the next call. Rejects when
   * the peer closes or `withinMs` pass first, and tells what had arrived.
   */
  async readUntil(marker: string, withinMs: number = PATIENCE_MS): Promise<string> {
    let searched = 0;
    for (;;) {
      const at = this.#text.indexOf(marker, searched);
      if (at >= 0) return this.#takeText(at + marker.length);
      searched = Math.max(0, this.#text.length - marker.length);
      await this.#readMore(`${JSON.stringify(marker)} from the server`, withinMs);
      if (this.#hasEnded) {
        throw new Error(
          `Cannot read ${JSON.stringify(marker)}: the peer closed after ${this.#text}`,
        );
      }
    }
  }

  /** Takes all text until the peer closes. */
  async readToEnd(withinMs: number = PATIENCE_MS): Promise<string> {
    while (!this.#hasEnded) await this.#readMore("the server to close", withinMs);
    return this.#takeText(this.#text.length);
  }

  /**
   * Hands every chunk to `consumer`, first what is already here, until the peer closes or `close`
   * is called. A chunk is overwritten by the next read: whoever keeps bytes copies them. A consumer
   * that gives a promise is handed nothing more, and nothing more is read, until it resolves.
   */
  async consume(consumer: (chunk: Uint8Array) => void | Promise<void>): Promise<void> {
    if (this.#text !== "") {
      await consumer(new TextEncoder().encode(this.#takeText(this.#text.length)));
    }
    for (;;) {
      const length = await this.#read();
      this.#pendingRead = undefined;
      if (length === null) return;
      const pause = consumer(this.#buffer.subarray(0, length));
      if (pause !== undefined) await pause;
    }
  }

  /** Client side of STARTTLS; rejects when the peer's certificate does not stand up. */
  async startTls(tls: RawTlsOptions): Promise<void> {
    const plain = this.#connection;
    if ("handshake" in plain) throw new TypeError("TLS starts on a TCP connection only");
    const options = {
      hostname: tls.serverName,
      caCerts: [...tls.caCerts],
      ...(tls.alpnProtocols === undefined ? {} : { alpnProtocols: [...tls.alpnProtocols] }),
    };
    const secured = await Deno.startTls(plain, options);
    this.#connection = secured;
    await secured.handshake();
  }

  /** Tells the peer that nothing more comes; what it still says can be read. */
  closeWrite(): Promise<void> {
    return this.#connection.closeWrite();
  }

  /** Closes at once. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#connection.close();
    await this.#pendingRead;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #takeText(length: number): string {
    const taken = this.#text.slice(0, length);
    this.#text = this.#text.slice(length);
    return taken;
  }

  async #readMore(what: string, withinMs: number): Promise<void> {
    const length = await withDeadline(this.#read(), {
      what,
      withinMs,
      seen: () => this.#text,
    });
    this.#pendingRead = undefined;
    if (length === null) return;
    this.#text += this.#decoder.decode(this.#buffer.subarray(0, length), { stream: true });
  }

  /** At most one read is under way; what a deadline gave up on is taken up by the next call. */
  #read(): Promise<number | null> {
    return this.#pendingRead ??= this.#readOnce();
  }

  async #readOnce(): Promise<number | null> {
    try {
      const length = await this.#connection.read(this.#buffer);
      if (length === null) this.#hasEnded = true;
      return length;
    } catch {
      // A reset, or our own close while a read waits, ends the stream as the peer's close does.
      this.#hasEnded = true;
      return null;
    }
  }
}
