import type { ChatClient } from "../clients/mod.ts";

/** XEP-0199. */
export const PING = "<ping xmlns='urn:xmpp:ping'/>";

/**
 * Waits until the server has answered a ping of `client`, and so has read everything sent before.
 * Slows down a client that writes all the time.
 */
export async function untilTaken(client: ChatClient): Promise<void> {
  await client.iq({ type: "get", payload: PING });
}
