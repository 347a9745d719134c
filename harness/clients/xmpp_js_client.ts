// @ts-types="./xmpp_js_modules.d.ts"
import { client, xml } from "@xmpp/client";
import type { ChatClientOptions, MessageOptions, PresenceOptions } from "./chat_client.ts";
import { ChatClient, newId } from "./chat_client.ts";
import { Inbox } from "./inbox.ts";
import type { XmppJsEntity } from "./xmpp_js_entity.ts";
import { destroySocket, toReceivedStanza } from "./xmpp_js_entity.ts";
import { trustOnly } from "./xmpp_js_trust.ts";

/** How a client made of `@xmpp/client` logs in. */
export interface XmppJsClientOptions extends ChatClientOptions {
  /** @default the strongest that both sides know */
  readonly mechanism?: "PLAIN" | "SCRAM-SHA-1";
}

/** A real client: the npm package `@xmpp/client`. */
export class XmppJsClient extends ChatClient {
  readonly jid: string;
  protected override readonly inbox: Inbox;
  readonly #entity: XmppJsEntity;

  private constructor(entity: XmppJsEntity, inbox: Inbox, jid: string) {
    super();
    this.#entity = entity;
    this.inbox = inbox;
    this.jid = jid;
  }

  /** A client that is bound and has sent no presence; rejects when it is not let in. */
  static async connect(options: XmppJsClientOptions): Promise<XmppJsClient> {
    const { domain, localpart: username, password, resource, mechanism } = options;
    const scheme = options.security === "direct" ? "xmpps" : "xmpp";
    const entity = client({
      service: `${scheme}://${options.host ?? "127.0.0.1"}:${options.port}`,
      domain,
      resource,
      username,
      password,
      // Left to itself it refuses PLAIN without TLS, and takes the first that it knows with it.
      ...(mechanism === undefined ? {} : {
        credentials: (authenticate: Authenticate) =>
          authenticate({ username, password }, mechanism),
      }),
    });
    if (options.caFile !== undefined) {
      const starttls = xml("starttls", { xmlns: "urn:ietf:params:xml:ns:xmpp-tls" });
      trustOnly(entity, starttls, { ca: await Deno.readTextFile(options.caFile), domain });
    }
    const inbox = new Inbox();
    const jid = await startEntity(entity, inbox);
    return new XmppJsClient(entity, inbox, jid);
  }

  protected override sendXml(text: string): Promise<void> {
    return this.#entity.write(text);
  }

  override async sendMessage(
    to: string,
    body: string,
    options: MessageOptions = {},
  ): Promise<string> {
    const id = options.id ?? newId("message");
    const attributes = { id, to, type: options.type ?? "chat" };
    await this.#entity.send(xml("message", attributes, xml("body", {}, body)));
    return id;
  }

  override async presence(options: PresenceOptions = {}): Promise<void> {
    const priority = options.priority === undefined
      ? undefined
      : xml("priority", {}, String(options.priority));
    const { to, type } = options;
    await this.#entity.send(xml("presence", { to, type }, priority));
  }

  override async disconnect(): Promise<void> {
    if (this.#entity.status === "online") await this.#entity.stop();
  }

  override kill(): Promise<void> {
    return killEntity(this.#entity);
  }

  override [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}

type Authenticate = (
  credentials: { readonly username: string; readonly password: string },
  mechanism: string,
) => Promise<void>;

/** Connects without its habit of connecting again, and gives the address that it was given. */
export async function startEntity(entity: XmppJsEntity, inbox: Inbox): Promise<string> {
  entity.reconnect.stop();
  let failure: Error | undefined;
  entity.on("error", (error) => failure ??= error);
  entity.on("stanza", (element) => inbox.push(toReceivedStanza(element)));
  entity.on("disconnect", () => inbox.fail(failure ?? new Error("The server has disconnected")));
  try {
    return (await entity.start()).toString();
  } catch (thrown) {
    await killEntity(entity);
    throw thrown;
  }
}

/** Cuts the connection, unless it is gone already, and waits until it is. */
export async function killEntity(entity: XmppJsEntity): Promise<void> {
  if (entity.socket === null) return;
  const gone = Promise.withResolvers<void>();
  entity.on("disconnect", gone.resolve);
  destroySocket(entity);
  await gone.promise;
}
