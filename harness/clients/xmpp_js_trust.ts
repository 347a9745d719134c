import { EventEmitter } from "node:events";
import { connect, type Socket } from "node:net";
import type { XmppJsElement, XmppJsEntity, XmppJsSocket } from "./xmpp_js_entity.ts";

/** Trust settings of an `@xmpp/client` client for its server. */
export interface XmppJsTrust {
  /** PEM certificates of the authorities; the system's are not asked. */
  readonly ca: string;
  /** The name that the certificate must bear. */
  readonly domain: string;
}

interface SocketParameters {
  readonly host: string;
  readonly port: number;
}

/** A shell around a socket, as the package's own `tls` transport has one. */
export interface SocketShell extends EventEmitter, XmppJsSocket {
  connect(parameters: unknown): void;
}

/** The package never makes one: it borrows the methods of the prototype. */
export interface Transport {
  readonly prototype: {
    readonly Socket: new () => SocketShell;
    socketParameters(service: string): SocketParameters | undefined;
  };
}

interface FeatureContext {
  readonly entity: TrustedEntity;
}

/** The inner parts of a client that trust is built into. */
export interface TrustedEntity extends XmppJsEntity {
  readonly transports: Transport[];
  readonly streamFeatures: {
    use(
      name: string,
      namespace: string,
      handler: (context: FeatureContext, next: () => Promise<unknown>) => Promise<unknown>,
    ): void;
  };
  sendReceive(element: XmppJsElement): Promise<XmppJsElement>;
  restart(): Promise<void>;
  isSecure(): boolean;
  _attachSocket(socket: SocketShell): void;
  _detachSocket(): void;
}

/** Namespace of the feature and its elements (RFC 6120 §5). */
export const STARTTLS = "urn:ietf:params:xml:ns:xmpp-tls";

/**
 * Keeps a client from starting TLS, whatever the server offers.
 *
 * The package's own STARTTLS steps aside for sockets that are not `net.Socket`s, so that a shell
 * around one is all it takes.
 */
export function stayPlain(entity: TrustedEntity): void {
  const plain = findTransport(entity, "xmpp://localhost:1");
  entity.transports.unshift(derive(plain, { Socket: PlainShell }));
}

/**
 * Makes a client check its server against our own authority and name, over direct TLS.
 *
 * The package calls `tls.connect` without a place for options; they get there with the parameters
 * that its transport computes.
 */
export function trustDirect(entity: TrustedEntity, trust: XmppJsTrust): void {
  const direct = findTransport(entity, "xmpps://localhost:1");
  const socketParameters = (service: string) => {
    const parameters = direct.prototype.socketParameters(service);
    return parameters === undefined ? undefined : { ...parameters, ...tlsOptions(trust) };
  };
  entity.transports.unshift(derive(direct, { socketParameters }));
}

/**
 * The same over STARTTLS, by a handler of our own in place of the package's, which knows no options
 * either. `request` is the element that asks for it.
 */
export function trustStarttls(
  entity: TrustedEntity,
  request: XmppJsElement,
  trust: XmppJsTrust,
): void {
  stayPlain(entity);
  const TlsShell = findTransport(entity, "xmpps://localhost:1").prototype.Socket;
  entity.streamFeatures.use("starttls", STARTTLS, async ({ entity: client }, next) => {
    const shell = client.socket;
    if (!(shell instanceof PlainShell)) return next();
    const answer = await client.sendReceive(request);
    if (answer.name !== "proceed") throw new Error(`Cannot start TLS: got ${answer}`);
    client._detachSocket();
    const secured = new TlsShell();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    secured.once("connect", resolve);
    secured.once("error", reject);
    secured.connect({ socket: shell.release(), ...tlsOptions(trust) });
    await promise;
    secured.removeListener("error", reject);
    client._attachSocket(secured);
    await client.restart();
  });
}

function tlsOptions(trust: XmppJsTrust) {
  return { ca: trust.ca, servername: trust.domain };
}

/** The transport of `entity` for services such as `service`. */
export function findTransport(entity: TrustedEntity, service: string): Transport {
  const isFor = (transport: Transport) => {
    try {
      return transport.prototype.socketParameters(service) !== undefined;
    } catch {
      return false; // a transport of another scheme may not even parse the address
    }
  };
  const found = entity.transports.find(isFor);
  if (found === undefined) throw new TypeError(`@xmpp/client has no transport for ${service}`);
  return found;
}

/** `base` with some members of its prototype replaced. */
export function derive(base: Transport, members: Partial<Transport["prototype"]>): Transport {
  return { prototype: Object.assign(Object.create(base.prototype), members) };
}

const FORWARDED = ["close", "connect", "data", "error"] as const;

/** A plain TCP socket behind the few methods that the package calls. */
class PlainShell extends EventEmitter implements SocketShell {
  readonly secure = false;
  socket: Socket | null = null;

  connect(parameters: SocketParameters): void {
    const socket = connect(parameters);
    this.socket = socket;
    for (const event of FORWARDED) socket.on(event, (...args) => this.emit(event, ...args));
  }

  /** Gives the socket up to whoever goes on with it. */
  release(): Socket {
    const socket = this.socket;
    if (socket === null) throw new TypeError("The socket has been released or never connected");
    for (const event of FORWARDED) socket.removeAllListeners(event);
    this.socket = null;
    socket.on("error", () => {}); // whoever goes on with it hears of it too
    return socket;
  }

  write(data: string, written: (error?: Error | null) => void): void {
    this.socket?.write(data, written);
  }

  end(): void {
    this.socket?.end();
  }
}
