import type { RawSocketOptions, RawTlsOptions } from "./raw_socket.ts";
import { RawSocket } from "./raw_socket.ts";
import type { RawCredentials, RawMechanism } from "./scram.ts";
import { plainResponse, ScramExchange } from "./scram.ts";

/** Login options of a raw client. */
export interface RawLoginOptions extends RawSocketOptions, RawCredentials {
  /** The domain of the account. */
  readonly domain: string;
  /** @default chosen by the server */
  readonly resource?: string;
  /** @default "PLAIN" */
  readonly mechanism?: RawMechanism;
  /** Upgrades with STARTTLS before logging in. */
  readonly starttls?: RawTlsOptions;
}

const SASL = "urn:ietf:params:xml:ns:xmpp-sasl";

/**
 * A client without an XML parser, for load and for hostile tests: it knows the few exchanges of a
 * login by heart and then leaves the bytes to its owner.
 */
export class RawClient implements AsyncDisposable {
  readonly socket: RawSocket;
  /** Full JID as the server bound it. */
  readonly jid: string;

  private constructor(socket: RawSocket, jid: string) {
    this.socket = socket;
    this.jid = jid;
  }

  /** A client that is bound and has sent no presence. */
  static async login(options: RawLoginOptions): Promise<RawClient> {
    const socket = await openAuthenticated(options);
    try {
      return new RawClient(socket, await bindResource(socket, options.resource));
    } catch (thrown) {
      await socket.close();
      throw thrown;
    }
  }

  send(data: string | Uint8Array): Promise<void> {
    return this.socket.send(data);
  }

  /** Ends the stream as RFC 6120 §4.4 asks for, then the connection. */
  async logout(): Promise<void> {
    await this.socket.send("</stream:stream>");
    await this.socket.readUntil("</stream:stream>");
    await this.socket.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.socket.close();
  }
}

/** A stream on which its account is authenticated and nothing is bound or resumed yet. */
export async function openAuthenticated(options: RawLoginOptions): Promise<RawSocket> {
  const socket = await RawSocket.connect(options);
  try {
    await openStream(socket, options.domain);
    if (options.starttls !== undefined) await upgrade(socket, options);
    await authenticate(socket, options);
    await openStream(socket, options.domain);
    return socket;
  } catch (thrown) {
    await socket.close();
    throw thrown;
  }
}

/** Sends a stream header and takes everything up to the end of the features. */
export async function openStream(socket: RawSocket, domain: string): Promise<string> {
  await socket.send(
    `<?xml version='1.0'?><stream:stream to='${domain}' version='1.0' xml:lang='en' ` +
      `xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>`,
  );
  return await socket.readUntil("</stream:features>");
}

async function upgrade(socket: RawSocket, options: RawLoginOptions): Promise<void> {
  await socket.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>");
  await socket.readUntil(">");
  await socket.startTls(options.starttls!);
  await openStream(socket, options.domain);
}

async function authenticate(socket: RawSocket, options: RawLoginOptions): Promise<void> {
  const mechanism = options.mechanism ?? "PLAIN";
  const auth = (first: string) => `<auth xmlns='${SASL}' mechanism='${mechanism}'>${first}</auth>`;
  if (mechanism === "PLAIN") {
    await socket.send(auth(plainResponse(options)));
    await readSaslElement(socket, "success");
    return;
  }
  const exchange = new ScramExchange(mechanism, options);
  await socket.send(auth(exchange.first()));
  const challenge = await readSaslElement(socket, "challenge");
  await socket.send(`<response xmlns='${SASL}'>${exchange.final(challenge)}</response>`);
  exchange.verify(await readSaslElement(socket, "success"));
}

/** Takes one element of the SASL exchange and gives its text; rejects when it is not `name`. */
async function readSaslElement(socket: RawSocket, name: string): Promise<string> {
  let seen = await socket.readUntil(">");
  const isEmpty = () => seen.endsWith("/>");
  if (!isEmpty()) seen += await socket.readUntil(seen.startsWith("<failure") ? "</failure>" : "</");
  if (!seen.startsWith(`<${name}`)) throw new Error(`Cannot log in: the server answered ${seen}`);
  if (isEmpty()) return "";
  await socket.readUntil(">");
  return seen.slice(seen.indexOf(">") + 1, -"</".length);
}

/** Binds a resource; gives the full JID. */
export async function bindResource(
  socket: RawSocket,
  resource: string | undefined,
): Promise<string> {
  const wish = resource === undefined ? "" : `<resource>${resource}</resource>`;
  await socket.send(
    `<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>${wish}</bind></iq>`,
  );
  const answer = await socket.readUntil("</iq>");
  const jid = /<jid>([^<]+)<\/jid>/.exec(answer)?.[1];
  if (jid === undefined) throw new Error(`Cannot bind: the server answered ${answer}`);
  return jid;
}
