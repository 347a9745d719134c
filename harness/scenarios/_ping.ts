import type { ChatClient } from "../clients/mod.ts";

/** XEP-0199. */
export const PING = "<ping xmlns='urn:xmpp:ping'/>";

/**
 * Waits until the server has answered `client`, and so has taken all that it sent before: paces somebody
 * who goes on writing.
 */
export async function untilTaken(client: ChatClient): Promise<void> {
  await client.iq({ type: "get", payload: PING });
}
