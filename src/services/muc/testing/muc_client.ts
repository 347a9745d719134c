import { parseElement } from "../../../xmpp/mod.ts";
import { COVEN, MUC } from "./muc_world.ts";
import type { MucNode } from "./muc_world.ts";

const MUC_USER = `${MUC}#user`;

/** A client, as far as a room is concerned. */
export class MucClient {
  readonly jid: string;
  node: MucNode;
  /** Its nickname; undefined while it is not in the room, as far as it knows. */
  nick: string | undefined;
  isEntering = false;
  /** Times that it was told to have left without leaving. */
  thrownOut = 0;
  /** Accounts that it was shown, by nickname. */
  readonly shown = new Map<string, string>();
  /** The last error that it got. */
  lastError: string | undefined;
  /** Texts of the messages that it got. */
  readonly texts: string[] = [];

  constructor(jid: string, node: MucNode) {
    this.jid = jid;
    this.node = node;
  }

  async enter(nick: string): Promise<void> {
    const join = this.nick === undefined ? `<x xmlns='${MUC}'/>` : "";
    this.isEntering = this.nick === undefined;
    await this.node.take(`<presence from='${this.jid}' to='${COVEN}/${nick}'>${join}</presence>`);
    this.read();
    this.isEntering = false;
  }

  async leave(): Promise<void> {
    if (this.nick === undefined) return;
    const { jid, nick } = this;
    this.#forget();
    await this.node.leave(jid, nick);
    this.read();
  }

  move(to: MucNode): void {
    if (to === this.node) return;
    to.resume(this.jid, this.node);
    this.node = to;
  }

  /** Reads what it got. */
  read(nodes: readonly MucNode[] = [this.node]): void {
    for (const xml of nodes.flatMap((node) => node.got(this.jid))) {
      if (xml.startsWith("<presence")) this.#see(xml);
      if (xml.includes("type='error'")) this.lastError = xml;
      const text = /<body>(.*?)<\/body>/.exec(xml)?.[1];
      if (text !== undefined) this.texts.push(text);
    }
  }

  #see(xml: string): void {
    const presence = parseElement(new TextEncoder().encode(xml));
    const type = presence.attribute("type");
    if (type === "error" || this.nick === undefined && !this.isEntering) return;
    const nick = presence.attribute("from")!.slice(COVEN.length + 1);
    const x = presence.child("x", MUC_USER);
    const codes = x?.elements.map((each) => each.attribute("code")) ?? [];
    const item = x?.child("item");
    if (type === "unavailable") {
      this.shown.delete(nick);
      if (codes.includes("110") && !codes.includes("303")) {
        this.thrownOut++;
        this.#forget();
      }
      return;
    }
    this.shown.set(nick, item?.attribute("jid")?.split("/")[0] ?? "");
    if (codes.includes("110")) this.nick = nick;
  }

  #forget(): void {
    this.nick = undefined;
    this.shown.clear();
  }
}
