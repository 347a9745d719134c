// @ts-types="./xmpp_js_modules.d.ts"
import { component, xml } from "@xmpp/component";
import type { MessageOptions, PresenceOptions } from "./chat_client.ts";
import { newId } from "./chat_client.ts";
import type { ReceivedStanza } from "./received_stanza.ts";
import { ANSWER_WITHIN_MS, toReceivedStanza } from "./xmpp_js_entity.ts";
import type { StartedEntity } from "./xmpp_js_peer.ts";
import { startEntity, XmppJsPeer } from "./xmpp_js_peer.ts";

/** Options of a component's connection (XEP-0114). */
export interface XmppComponentOptions {
  /** @default "127.0.0.1" */
  readonly host?: string;
  readonly port: number;
  readonly domain: string;
  readonly secret: string;
}

/** A real component: the npm package `@xmpp/component`. */
export class XmppComponent extends XmppJsPeer {
  static async connect(options: XmppComponentOptions): Promise<XmppComponent> {
    return new XmppComponent(await XmppComponent.start(options));
  }

  /** For `connect` of whatever is built on this. */
  protected static start(options: XmppComponentOptions): Promise<StartedEntity> {
    const entity = component({
      service: `xmpp://${options.host ?? "127.0.0.1"}:${options.port}`,
      domain: options.domain,
      password: options.secret,
    });
    entity.timeout = ANSWER_WITHIN_MS;
    return startEntity(entity);
  }

  protected override sendXml(text: string): Promise<void> {
    // XEP-0114: a component says itself who it speaks as.
    return super.sendXml(text.replace(/^<(\w+)/, `<$1 from='${this.jid}'`));
  }

  override async sendMessage(
    to: string,
    body: string,
    options: MessageOptions & { readonly from?: string } = {},
  ): Promise<string> {
    const id = options.id ?? newId("message");
    const attributes = { id, to, type: options.type ?? "chat", from: options.from ?? this.jid };
    await this.entity.send(xml("message", attributes, xml("body", {}, body)));
    return id;
  }

  override async presence(options: PresenceOptions = {}): Promise<void> {
    const { to, type } = options;
    await this.entity.send(xml("presence", { from: this.jid, to, type }));
  }

  /** Answers every message from now on with what `answer` makes of it, from the address asked. */
  echo(answer: (message: ReceivedStanza) => string = (message) => message.body ?? ""): void {
    this.entity.on("stanza", (element) => {
      if (element.name !== "message" || element.attrs.type === "error") return;
      const { from, to, id, type } = element.attrs;
      const body = answer(toReceivedStanza(element));
      const reply = xml("message", { from: to, to: from, id, type }, xml("body", {}, body));
      // A send that fails does so because the connection went, which `inbox` tells to whoever waits.
      this.entity.send(reply).catch(() => {});
    });
  }
}
