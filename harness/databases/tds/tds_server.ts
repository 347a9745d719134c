import { joinBytes } from "../../../src/base/mod.ts";
import { ByteReader } from "./bytes.ts";
import type { DoubleState } from "./double_state.ts";
import { FIRST_USER } from "./double_state.ts";
import { ENCRYPTION, encryptionOf, parseLogin, preloginAnswer } from "./login.ts";
import type { ClientMessage } from "./packets.ts";
import { MESSAGE, MessageReader, packetsOf } from "./packets.ts";
import { requestOf } from "./requests.ts";
import { Session } from "./session.ts";
import { TdsError } from "./tds_error.ts";
import type { TlsPort } from "./tls_port.ts";
import { CHANGE, DONE, doneToken, errorToken, loginAck, resetToken, textChange } from "./tokens.ts";

/** Options of a server. */
export interface TdsServerOptions {
  readonly state: DoubleState;
  /** Such as `16.0.4135`. */
  readonly version: string;
  readonly maxConnections: number;
  /** Absent: no encryption. */
  readonly tls?: TlsPort;
}

/** The oldest version of the protocol that is spoken: 7.2. */
const OLDEST_TDS = 0x72090002;
/** Severity from which an error ends the session. */
const FATAL = 20;

/** A local server that speaks TDS and stands in for SQL Server. */
export class TdsServer {
  readonly #options: TdsServerOptions;
  readonly #sessions = new Map<number, { readonly session: Session; end(): void }>();
  #nextId = 51; // the smaller numbers are the server's own

  constructor(options: TdsServerOptions) {
    this.#options = options;
  }

  /** Serves a connection until it ends. */
  async serve(connection: Deno.Conn): Promise<void> {
    const client = new ClientConnection(connection, this.#options.tls);
    const end = () => client.close();
    let session: Session | undefined;
    try {
      session = await this.#logIn(client, end);
      if (session !== undefined) await this.#converse(client, session);
    } catch (thrown) {
      if (!isLost(thrown)) console.error(thrown);
    } finally {
      if (session !== undefined) {
        this.#sessions.delete(session.id);
        session.close();
      }
      client.close();
    }
  }

  get #version(): readonly number[] {
    return this.#options.version.split(".").map(Number);
  }

  async #logIn(client: ClientConnection, end: () => void): Promise<Session | undefined> {
    const hello = await client.next();
    if (hello?.type !== MESSAGE.prelogin) return undefined;
    const wanted = encryptionOf(hello.data);
    const isEncrypted = wanted === ENCRYPTION.on && this.#options.tls !== undefined;
    const encryption = isEncrypted ? ENCRYPTION.on : ENCRYPTION.notSupported;
    await client.send(preloginAnswer(this.#version, encryption));
    if (isEncrypted) await client.encrypt();
    const message = await client.next();
    if (message?.type !== MESSAGE.login) return undefined;
    try {
      const { answer, session } = this.#accept(message.data, end);
      await client.send(answer);
      return session;
    } catch (thrown) {
      if (!(thrown instanceof TdsError)) throw thrown;
      await client.send(joinBytes([errorToken(thrown), doneToken("done", DONE.error)]));
      return undefined;
    }
  }

  #accept(data: Uint8Array, end: () => void) {
    const { state, version, maxConnections } = this.#options;
    const login = parseLogin(data);
    const { tdsVersion, username, password, packetBytes } = login;
    if (tdsVersion < OLDEST_TDS) throw new TdsError(17828, "The protocol is too old.", FATAL);
    if (this.#sessions.size >= maxConnections) {
      throw new TdsError(17809, "The maximum number of user connections has been reached.", FATAL);
    }
    if (!state.isLogin(username, password)) {
      throw new TdsError(18456, `Login failed for user '${username}'.`, 14);
    }
    const database = state.database(login.database || "master");
    const isAllowed = username === FIRST_USER || database?.owner === username ||
      database?.grants[username] !== undefined;
    if (database === undefined || !isAllowed) {
      const message = `Cannot open database "${login.database}" requested by the login.`;
      throw new TdsError(4060, message, 11);
    }
    const sessions = this.#sessions;
    const session = new Session({
      id: this.#nextId++,
      user: username,
      state,
      database,
      neighbours: {
        serverVersion: version,
        get sessions() {
          return [...sessions.values()].map((each) => each.session);
        },
        kill: (id) => {
          const other = sessions.get(id);
          if (other === undefined) throw new TdsError(6106, `Process ID ${id} is not active.`);
          other.end();
        },
      },
    });
    this.#sessions.set(session.id, { session, end });
    const answer = joinBytes([
      textChange(CHANGE.database, database.name),
      loginAck(tdsVersion, this.#version),
      textChange(CHANGE.packetSize, String(packetBytes), String(packetBytes)),
      doneToken("done", DONE.final),
    ]);
    return { answer, session };
  }

  /** Answers one request after the other. A request may be cancelled meanwhile. */
  async #converse(client: ClientConnection, session: Session): Promise<void> {
    const prepared = new Map<number, string>();
    let next = client.next();
    for (;;) {
      const message = await next;
      if (message === undefined) return;
      if (message.type === MESSAGE.attention) {
        await client.send(doneToken("done", DONE.attention));
        next = client.next();
        continue;
      }
      const cancel = new AbortController();
      const request = this.#answer(message, session, prepared, cancel.signal);
      let isDone = false;
      const settled = request.then(() => undefined, () => undefined).finally(() => isDone = true);
      next = client.next();
      const first = await Promise.race([settled, next.catch(() => undefined)]);
      if (!isDone && first?.type !== MESSAGE.attention) {
        cancel.abort(new Error("the client has gone"));
        await request.catch(() => {});
        return;
      }
      if (!isDone) {
        cancel.abort(new TdsError(0, "The client has cancelled the request."));
        await request.catch(() => {});
        session.cancelled();
        // Each message has an answer of its own: the request, and what cancelled it.
        await client.send(doneToken("done", DONE.error));
        await client.send(joinBytes([...session.takeNews(), doneToken("done", DONE.attention)]));
        next = client.next();
        continue;
      }
      const { answer, isFatal } = await request;
      await client.send(answer);
      if (isFatal) return;
    }
  }

  async #answer(
    message: ClientMessage,
    session: Session,
    prepared: Map<number, string>,
    signal: AbortSignal,
  ): Promise<{ readonly answer: Uint8Array; readonly isFatal: boolean }> {
    const parts: Uint8Array[] = [];
    if (message.resetsSession) {
      session.reset();
      parts.push(...session.takeNews(), resetToken());
    }
    try {
      const reader = new ByteReader(message.data);
      checkHeaders(reader, message.resetsSession ? undefined : session.descriptor);
      await requestOf(message.type).run({ reader, session, prepared, signal, parts });
      return { answer: joinBytes(parts), isFatal: false };
    } catch (thrown) {
      if (!(thrown instanceof TdsError)) throw thrown;
      const kind = message.type === MESSAGE.rpc ? "doneProcedure" : "done";
      parts.push(...session.takeNews(), errorToken(thrown), doneToken(kind, DONE.error));
      return { answer: joinBytes(parts), isFatal: thrown.severity >= FATAL };
    }
  }
}

/** Reads the headers of a request, which name the session's transaction, if it is to be checked. */
function checkHeaders(reader: ByteReader, expected: bigint | undefined): void {
  const total = reader.u32();
  for (let read = 4; read < total;) {
    const [length, type] = [reader.u32(), reader.u16()];
    if (type === 2) {
      const descriptor = reader.u64();
      reader.skip(4);
      if (expected !== undefined && descriptor !== expected) {
        throw new TdsError(3989, "The request names another transaction than its session's.");
      }
    } else reader.skip(length - 6);
    read += length;
  }
}

/** The bytes of a client, plain or encrypted, as messages. */
class ClientConnection {
  readonly #plain: Deno.Conn;
  readonly #tls: TlsPort | undefined;
  #connection: Deno.Conn;
  #reader = new MessageReader();
  readonly #messages: ClientMessage[] = [];

  constructor(connection: Deno.Conn, tls: TlsPort | undefined) {
    this.#plain = connection;
    this.#connection = connection;
    this.#tls = tls;
  }

  /** Returns the next message; undefined at the end. */
  async next(): Promise<ClientMessage | undefined> {
    const buffer = new Uint8Array(65_536);
    for (;;) {
      const message = this.#messages.shift();
      if (message !== undefined) return message;
      const count = await this.#connection.read(buffer);
      if (count === null) return undefined;
      this.#messages.push(...this.#reader.push(buffer.subarray(0, count)));
    }
  }

  async send(data: Uint8Array): Promise<void> {
    const packets = packetsOf(MESSAGE.response, data);
    for (let sent = 0; sent < packets.length;) {
      sent += await this.#connection.write(packets.subarray(sent));
    }
  }

  /** Makes TLS of the connection. The handshake goes in messages of its own. */
  async encrypt(): Promise<void> {
    this.#connection = await this.#tls!.accept(this.#plain);
    this.#reader = new MessageReader();
  }

  close(): void {
    for (const connection of new Set([this.#connection, this.#plain])) {
      try {
        connection.close();
      } catch {
        // it has ended already
      }
    }
  }
}

function isLost(thrown: unknown): boolean {
  return thrown instanceof Deno.errors.BadResource || thrown instanceof Deno.errors.Interrupted ||
    thrown instanceof Deno.errors.ConnectionReset || thrown instanceof Deno.errors.BrokenPipe ||
    thrown instanceof Deno.errors.UnexpectedEof || thrown instanceof Deno.errors.InvalidData;
}
