import { ManualClock } from "../../../base/mod.ts";
import type { RawPeer } from "../../../xmpp/stream/testing/raw_peer.ts";
import { TestNode } from "./nodes.ts";
import { TestLink } from "./test_link.ts";
import type { NodeOptions, World } from "./nodes.ts";

/** Linked nodes with one clock. */
export class Nodes implements AsyncDisposable {
  readonly world: World = { clock: new ManualClock(), claims: new Map() };
  readonly all: readonly TestNode[];
  readonly links = new Map<string, TestLink>();

  constructor(count = 2, options: readonly NodeOptions[] = []) {
    this.all = Array.from(
      { length: count },
      (_, at) => new TestNode(at + 1, this.world, options[at]),
    );
    for (const one of this.all) {
      for (const other of this.all) {
        if (one.process < other.process) this.link(one, other);
      }
    }
  }

  link(one: TestNode, other: TestNode): TestLink {
    const link = new TestLink(one, other);
    this.links.set(`${one.process}-${other.process}`, link);
    return link;
  }

  get between(): TestLink {
    return this.links.get("1-2")!;
  }

  /** Lets `forMs` pass, with all that is due and all that follows. */
  async pass(forMs: number): Promise<void> {
    for (let left = forMs; left > 0; left -= 50) {
      await settle();
      this.world.clock.advance(Math.min(50, left));
    }
    await settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = this.all.map((node) => node.end());
    await this.pass(100);
    await Promise.all(ends);
  }
}

/** Lets all frames in memory arrive. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/**
 * Makes a client of alice's at `node` lose its connection and get stanzas `ids`; returns the id to
 * resume by.
 */
export async function sleepAt(node: TestNode, ...ids: string[]): Promise<string> {
  const { peer, id } = await node.enter();
  peer.cut();
  await settle();
  node.deliver(...ids);
  return id;
}

/** Returns the ids of the messages that a client has got and not read. */
export function unreadBy({ unread }: RawPeer): string[] {
  return [...unread.matchAll(/<message [^>]*id='(\w+)'/g)].map(([, id]) => id!);
}
