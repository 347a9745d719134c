import { ChatClient, EXPECT_WITHIN_MS } from "./chat_client.ts";
import { withDeadline } from "../deadline.ts";
import { Inbox } from "./inbox.ts";
import type { XmppJsEntity } from "./xmpp_js_entity.ts";
import { destroySocket, toReceivedStanza } from "./xmpp_js_entity.ts";

/** The answer to binding a resource is the package's own business. */
const BIND = "urn:ietf:params:xml:ns:xmpp-bind";

/** One that has logged in, and what it receives. */
export interface StartedEntity {
  readonly entity: XmppJsEntity;
  readonly inbox: Inbox;
  readonly jid: string;
}

/** Common base of clients and components made of the xmpp.js packages. */
export abstract class XmppJsPeer extends ChatClient {
  readonly jid: string;
  protected override readonly inbox: Inbox;
  protected readonly entity: XmppJsEntity;

  protected constructor({ entity, inbox, jid }: StartedEntity) {
    super();
    this.entity = entity;
    this.inbox = inbox;
    this.jid = jid;
  }

  protected override sendXml(text: string): Promise<void> {
    return this.entity.write(text);
  }

  override async disconnect(): Promise<void> {
    if (this.entity.status === "online") await this.entity.stop();
  }

  override kill(): Promise<void> {
    return killEntity(this.entity);
  }

  override [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}

/** Connects, without the package's habit of connecting again. */
export async function startEntity(
  entity: XmppJsEntity,
  withinMs: number = EXPECT_WITHIN_MS,
  { isResumable = false } = {},
): Promise<StartedEntity> {
  const inbox = new Inbox();
  entity.reconnect.stop();
  let failure: Error | undefined;
  entity.on("error", (error) => failure ??= error);
  entity.on("stanza", (element) => {
    if (element.getChild("bind", BIND) === undefined) inbox.push(toReceivedStanza(element));
  });
  entity.on("disconnect", () => {
    if (!isResumable) inbox.fail(failure ?? new Error("The server has disconnected"));
  });
  try {
    // Features that it has no use for leave it waiting for others, for ever.
    const started = withDeadline(entity.start(), {
      what: "@xmpp to log in",
      withinMs,
    });
    return { entity, inbox, jid: (await started).toString() };
  } catch (thrown) {
    await killEntity(entity);
    throw thrown;
  }
}

/** Cuts the connection, unless it is gone already, and waits until it is. */
async function killEntity(entity: XmppJsEntity): Promise<void> {
  if (entity.socket === null) return;
  const gone = Promise.withResolvers<void>();
  entity.on("disconnect", gone.resolve);
  destroySocket(entity);
  await gone.promise;
}
