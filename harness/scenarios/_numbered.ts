import type { ChatClient } from "../clients/mod.ts";

/** Sends messages number `from` to `to`, the latter excluded, of every sender in turn. */
export async function sendAll(
  senders: readonly ChatClient[],
  recipient: ChatClient,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  for (let number = from; number < to; number++) {
    for (const sender of senders) await sender.sendMessage(recipient.jid, String(number));
  }
}

/** Claims `each` messages of every sender; throws unless they came in order, once, and nothing else did. */
export async function expectAll(
  senders: readonly ChatClient[],
  recipient: ChatClient,
  each: number,
): Promise<void> {
  for (const sender of senders) {
    const isTheirs = ({ from }: { readonly from: string | undefined }) => from === sender.jid;
    for (let number = 0; number < each; number++) {
      const { body } = await recipient.expectMessage(isTheirs);
      if (body !== String(number)) {
        throw new Error(`Expected message ${number} of ${sender.jid}: ${body} came`);
      }
    }
  }
  for (const sender of senders) {
    await recipient.expectNothingElse(sender);
    await sender.expectNothingElse();
  }
}
