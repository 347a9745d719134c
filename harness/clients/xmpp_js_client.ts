// @ts-types="./xmpp_js_modules.d.ts"
import { client, xml } from "@xmpp/client";
import type { ChatClientOptions, MessageOptions, PresenceOptions } from "./chat_client.ts";
import { EXPECT_WITHIN_MS, newId, selfContained } from "./chat_client.ts";
import { until } from "../until.ts";
import { withDeadline } from "../deadline.ts";
import type { XmppJsElement, XmppJsStreamManagement } from "./xmpp_js_entity.ts";
import { ANSWER_WITHIN_MS } from "./xmpp_js_entity.ts";
import { startEntity, XmppJsPeer } from "./xmpp_js_peer.ts";
import type { TrustedEntity } from "./xmpp_js_trust.ts";
import { STARTTLS, stayPlain, trustDirect, trustStarttls } from "./xmpp_js_trust.ts";
import { trustWebSocket } from "./xmpp_js_web_socket.ts";

/** Login options of a client made of `@xmpp/client`. */
export interface XmppJsClientOptions extends ChatClientOptions {
  /** @default the strongest that both sides know */
  readonly mechanism?: "PLAIN" | "SCRAM-SHA-1";
  /** Logs in over WebSocket: `wss` with `security: "direct"`, `ws` with `"none"`. @default false */
  readonly webSocket?: boolean;
  /**
   * Uses stream management where the server offers it: then losing the connection ends nothing, and
   * `comeBack` resumes. @default false
   */
  readonly streamManagement?: boolean;
  /**
   * Id of its installation, a random UUID: logs in by SASL2 (XEP-0388) where the server offers it, and
   * binds or resumes together with the login. Then `resource` is only the beginning of the resource.
   * @default it logs in by RFC 6120
   */
  readonly sasl2As?: string;
}

const STREAM_MANAGEMENT = "urn:xmpp:sm:3";
const SASL2 = "urn:xmpp:sasl:2";

/** A real client: the npm package `@xmpp/client`. */
export class XmppJsClient extends XmppJsPeer {
  /** A client that is bound and has sent no presence; rejects when it is not let in. */
  static async connect(options: XmppJsClientOptions): Promise<XmppJsClient> {
    const { domain, resource } = options;
    const entity = client({
      service: serviceOf(options),
      domain,
      resource,
      credentials: (authenticate: Authenticate, mechanisms: readonly string[]) =>
        logIn(entity, options, { authenticate, mechanisms }),
    });
    if (options.sasl2As === undefined) hideFeature(entity, "authentication", SASL2);
    entity.timeout = ANSWER_WITHIN_MS;
    leaveOutEmptyWrites(entity);
    await setSecurity(entity, options);
    const isResumable = options.streamManagement ?? false;
    if (!isResumable) hideFeature(entity, "sm", STREAM_MANAGEMENT);
    const started = await startEntity(entity, options.loginWithinMs, { isResumable });
    const made = new XmppJsClient(started);
    if (isResumable) await made.#untilManaged();
    return made;
  }

  /** Cuts the connection without a word; `comeBack` can follow. */
  async drop(): Promise<void> {
    await this.kill();
  }

  /** Connects again once the connection is gone, and resumes. */
  async comeBack(withinMs: number = EXPECT_WITHIN_MS): Promise<void> {
    await until(() => this.entity.status === "disconnect", {
      what: `${this.jid} to lose its connection`,
      withinMs,
    });
    const management = this.#management;
    const resumed = Promise.withResolvers<void>();
    management.on("resumed", resumed.resolve);
    try {
      await this.entity.reconnect.reconnect();
      await withDeadline(resumed.promise, { what: `${this.jid} to resume`, withinMs });
    } finally {
      management.off("resumed", resumed.resolve);
    }
  }

  get #management(): XmppJsStreamManagement {
    const { streamManagement } = this.entity;
    if (streamManagement === undefined) throw new TypeError("This client has no stream management");
    return streamManagement;
  }

  /** The package says that it is online before the server has answered `<enable/>`. */
  async #untilManaged(): Promise<void> {
    await until(() => this.#management.enabled, {
      what: `stream management of ${this.jid} to be on`,
      withinMs: EXPECT_WITHIN_MS,
    });
  }

  protected override async sendXml(text: string): Promise<void> {
    // The package counts those stanzas alone that it writes itself.
    if (this.entity.streamManagement?.enabled === true) return await this.entity.send(parsed(text));
    const isWebSocket = this.entity.options.service.startsWith("ws");
    await super.sendXml(isWebSocket ? selfContained(text) : text);
  }

  override async sendMessage(
    to: string,
    body: string,
    options: MessageOptions = {},
  ): Promise<string> {
    const id = options.id ?? newId("message");
    const attributes = { id, to, type: options.type ?? "chat" };
    await this.entity.send(xml("message", attributes, xml("body", {}, body)));
    return id;
  }

  override async presence(options: PresenceOptions = {}): Promise<void> {
    const priority = options.priority === undefined
      ? undefined
      : xml("priority", {}, String(options.priority));
    const { to, type } = options;
    await this.entity.send(xml("presence", { to, type }, priority));
  }
}

/**
 * A resumed stream with nothing to send again makes the package write an empty text. Deno 2.9 never
 * finishes such a write on a TLS socket, nor any after it.
 */
function leaveOutEmptyWrites(entity: TrustedEntity): void {
  const sendMany = entity.sendMany.bind(entity);
  entity.sendMany = (elements) => elements.length === 0 ? Promise.resolve() : sendMany(elements);
}

/** Hides a feature that the server offers: the package uses what it is offered. */
function hideFeature(entity: TrustedEntity, name: string, namespace: string): void {
  entity.prependListener("element", (element) => {
    if (element.getChild(name, namespace) === undefined) return;
    element.children = element.children.filter((child) =>
      typeof child === "string" || child.name !== name
    );
  });
}

type Authenticate = (
  credentials: { readonly username: string; readonly password: string },
  mechanism: string,
  userAgent?: XmppJsElement,
) => Promise<void>;

function serviceOf(options: XmppJsClientOptions): string {
  const { host = "127.0.0.1", port, security } = options;
  const isDirect = security === "direct";
  return options.webSocket === true
    ? `${isDirect ? "wss" : "ws"}://${host}:${port}/xmpp-websocket`
    : `${isDirect ? "xmpps" : "xmpp"}://${host}:${port}`;
}

async function setSecurity(entity: TrustedEntity, options: XmppJsClientOptions): Promise<void> {
  const { domain, security, caFile, webSocket = false } = options;
  if (webSocket) {
    if (security === "starttls") throw new TypeError("A WebSocket knows no STARTTLS");
    const ca = security === "none" ? undefined : await Deno.readTextFile(caFile ?? "");
    return trustWebSocket(entity, ca);
  }
  if (security === "none") return stayPlain(entity);
  if (caFile === undefined) throw new TypeError("TLS needs caFile");
  const trust = { ca: await Deno.readTextFile(caFile), domain };
  if (security === "direct") return trustDirect(entity, trust);
  trustStarttls(entity, xml("starttls", { xmlns: STARTTLS }), trust);
}

/** Left to itself the package refuses PLAIN without TLS, even on loopback where we ask for it. */
async function logIn(
  entity: TrustedEntity,
  options: XmppJsClientOptions,
  offer: { readonly authenticate: Authenticate; readonly mechanisms: readonly string[] },
): Promise<void> {
  if (options.security !== "none" && !entity.isSecure()) {
    throw new Error("The server asks for a password before TLS");
  }
  const mechanism = options.mechanism ?? offer.mechanisms[0];
  if (mechanism === undefined) throw new Error("The server offers no mechanism that we know");
  const { localpart: username, password, sasl2As: id } = options;
  const userAgent = id === undefined ? undefined : xml("user-agent", { id });
  await offer.authenticate({ username, password }, mechanism, userAgent);
}

/** Reads one element. */
function parsed(text: string): XmppJsElement {
  let found: XmppJsElement | undefined;
  const parser = new xml.Parser();
  parser.on("error", (error) => {
    throw error;
  });
  parser.on("element", (element) => found = element);
  parser.write(`<stream xmlns='jabber:client'>${text}`);
  if (found === undefined) throw new TypeError(`Cannot send ${text}: it is no element`);
  return found;
}
