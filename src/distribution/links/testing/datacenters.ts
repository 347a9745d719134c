import type { ManualClock } from "../../../base/mod.ts";
import { testEnvelope } from "./kit.ts";
import type { TestNode, TestSettler } from "./kit.ts";

export const DC1 = "dc1.example.com";
export const DC2 = "dc2.example.com";

export function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/** Closes the node, moving the clock at which `close` looks now and then. */
export async function close(node: TestNode, clock: ManualClock): Promise<void> {
  let isClosed = false;
  const closing = node.links.close().then(() => {
    isClosed = true;
  });
  await node.until(() => {
    clock.advance(10);
    return isClosed;
  }, "its links are closed");
  await closing;
}

/** Sends in small batches, so that events can happen in the turns between them. */
export async function sendPaced(node: TestNode, from: number, to: number, settler: TestSettler) {
  for (let i = from; i <= to; i++) {
    node.links.send(DC2, testEnvelope(i, { settler }));
    if (i % 20 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
