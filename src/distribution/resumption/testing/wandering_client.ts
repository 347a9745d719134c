import assert from "node:assert/strict";
import { bind } from "../../../xmpp/c2s/testing/c2s_fixture.ts";
import type { RawPeer } from "../../../xmpp/stream/testing/raw_peer.ts";
import { a, ALICE, ENABLE, ENABLED, resume } from "./nodes.ts";
import type { RoutedNode } from "./routed_node.ts";
import type { RoutedWorld } from "./routed_world.ts";

/** A client that takes its session from node to node, and logs in anew where it does not get it. */
export class WanderingClient {
  /** Ids of the messages that it has got, by session. */
  readonly sessions: string[][] = [];
  /** True when it acknowledges all that it gets at once. */
  isPrompt = false;
  readonly #world: RoutedWorld;
  readonly #resource: string;
  #peer: RawPeer | undefined;
  #at: RoutedNode | undefined;
  #id = "";
  /** Characters of the present stream that it has read. */
  #read = 0;
  #handled = 0;
  #isResumed = false;
  #hasQuit = false;
  #priority: number | undefined;

  constructor(world: RoutedWorld, resource = "home") {
    this.#world = world;
    this.#resource = resource;
  }

  /** Full JID of its sessions. */
  get jid(): string {
    return `${ALICE}/${this.#resource}`;
  }

  /** True while its stream carries its session. */
  get isConnected(): boolean {
    return this.#isResumed && this.#peer?.isClosed === false && this.#at?.isDead === false;
  }

  async login(node: RoutedNode): Promise<void> {
    this.#peer = await node.node.greet();
    await this.#bind(node);
  }

  /** Takes its session to a node; gives up after `patienceMs`, and may try again. */
  async move(node: RoutedNode, isCut: boolean, patienceMs: number): Promise<void> {
    this.take();
    if (isCut) this.#peer?.cut();
    else if (!this.#isResumed) this.#peer?.cut();
    const before = this.#peer;
    const peer = await node.node.greet();
    this.take(before);
    this.#isResumed = false;
    this.#peer = peer;
    this.#at = node;
    this.#read = peer.unread.length;
    this.#world.note(`${this.#resource} moves to ${node.node.host}, h ${this.#handled}`);
    peer.send(resume(this.#id, this.#handled));
    for (let leftMs = patienceMs; leftMs > 0 && !this.#isAnswered; leftMs -= 25) {
      await this.#world.pass(25);
    }
    if (!this.#isAnswered) return this.#world.note("moves no further");
    if (peer.unread.includes("<resumed ")) {
      this.#world.note("resumed");
      this.#isResumed = true;
      this.#read = 0;
      return;
    }
    this.#world.note(`failed: ${peer.unread}`);
    await peer.expect(/<failed .*<\/failed>/);
    await this.#bind(node);
  }

  /** Takes what it was sent, and acknowledges it if it is prompt. */
  take(peer = this.#peer): void {
    this.#takeLateAnswer();
    if (!this.#isResumed || peer === undefined) return;
    const before = this.#handled;
    this.#takeFrom(peer.unread);
    if (this.isPrompt && this.#handled > before) this.acknowledge();
  }

  /** Goes on with a stream that was resumed after it had turned away. */
  #takeLateAnswer(): void {
    if (this.#isResumed || this.#hasQuit || this.#peer?.unread.includes("<resumed ") !== true) {
      return;
    }
    this.#world.note(`${this.#resource} is resumed late`);
    this.#isResumed = true;
    this.#read = 0;
  }

  #takeFrom(unread: string): void {
    for (const [, kind, id] of unread.slice(this.#read).matchAll(STANZA)) {
      this.#handled++;
      if (kind !== "message") continue;
      this.#world.note(`${this.#resource} gets ${id}`);
      this.sessions.at(-1)!.push(id!);
    }
    this.#read = unread.length;
  }

  acknowledge(): void {
    if (this.isConnected) this.#peer!.send(a(this.#handled));
  }

  /** Sends presence with a priority; without one it becomes unavailable. */
  sendPresence(priority: number | undefined): void {
    if (!this.isConnected) return;
    this.#world.note(`${this.#resource} has priority ${priority}`);
    this.#peer!.send(
      priority === undefined
        ? "<presence type='unavailable'/>"
        : `<presence><priority>${priority}</priority></presence>`,
    );
    this.#priority = priority;
  }

  /** Priority that it has told last; undefined when it is unavailable. */
  get priority(): number | undefined {
    return this.#priority;
  }

  /** Ends its session, and acknowledges nothing before. */
  quit(): void {
    if (!this.isConnected) return;
    this.#world.note(`${this.#resource} quits`);
    this.#peer!.send("</stream:stream>");
    this.#isResumed = false;
    this.#hasQuit = true;
  }

  /** True when it has ended its session, and has not logged in since. */
  get hasQuit(): boolean {
    return this.#hasQuit;
  }

  get #isAnswered(): boolean {
    return /<resumed |<failed |<stream:error/.test(this.#peer!.unread);
  }

  async #bind(node: RoutedNode): Promise<void> {
    const peer = this.#peer!;
    const bound = bind(peer, this.#resource);
    let isDone = false;
    bound.then(() => isDone = true, () => isDone = true);
    while (!isDone) await this.#world.pass(25);
    await bound;
    peer.send(ENABLE);
    let enabled = ENABLED_ANYWHERE.exec(peer.unread);
    for (; enabled === null; enabled = ENABLED_ANYWHERE.exec(peer.unread)) {
      assert.ok(!peer.isClosed);
      await this.#world.pass(25);
    }
    this.#world.note(`${this.#resource} logs in at ${node.node.host}`);
    this.#id = enabled[1]!;
    this.sessions.push([]);
    this.#hasQuit = false;
    this.#at = node;
    this.#isResumed = true;
    this.#read = 0;
    this.#takeFrom(peer.unread.slice(0, enabled.index)); // nobody counts these stanzas
    this.#handled = 0;
    this.#read = enabled.index + enabled[0].length;
    peer.send("<presence/>");
    this.#priority = 0;
    await this.#world.pass(50);
  }
}

const ENABLED_ANYWHERE = new RegExp(ENABLED.source.replace("^", ""));
const STANZA = /<(message|presence|iq) [^>]*?id='(\w+)'|<(?:presence|iq) /g;
