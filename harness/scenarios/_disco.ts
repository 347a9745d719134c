import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";

/** The JIDs that `host` lists to `asking` (XEP-0030 §4), in its order, repeats and all. */
export async function discoItems(asking: ChatClient, host: string): Promise<readonly string[]> {
  const answer = await asking.iq({
    type: "get",
    to: host,
    payload: "<query xmlns='http://jabber.org/protocol/disco#items'/>",
  });
  assert.deepEqual([answer.type, answer.from], ["result", host]);
  return [...answer.xml.matchAll(/<item [^>]*jid=["']([^"']+)["']/g)].map(([, jid]) => jid!);
}
