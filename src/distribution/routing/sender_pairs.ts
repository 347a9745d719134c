/** Pairs of a sender (`senderKey`) and a recipient's address. */
export class SenderPairs {
  readonly #byRecipient = new Map<string, Set<string>>();

  add(sender: string, recipient: string): void {
    const senders = this.#byRecipient.get(recipient);
    if (senders === undefined) this.#byRecipient.set(recipient, new Set([sender]));
    else senders.add(sender);
  }

  has(sender: string, recipient: string): boolean {
    return this.#byRecipient.get(recipient)?.has(sender) === true;
  }
}
