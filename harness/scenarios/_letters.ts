import type { ChatClient } from "../clients/mod.ts";

/** A message on its way. */
export interface Letter {
  readonly from: string;
  readonly body: string;
}

/** Numbered messages to one recipient. */
export class Letters {
  readonly #recipient: ChatClient;
  #sent = 0;

  constructor(recipient: ChatClient) {
    this.#recipient = recipient;
  }

  async sendOf(sender: ChatClient): Promise<Letter> {
    const body = `letter ${++this.#sent}`;
    await sender.sendMessage(this.#recipient.jid, body);
    return { from: sender.jid, body };
  }

  /** Claims the next message of that sender. @throws unless it is `letter` */
  async expect(letter: Letter): Promise<void> {
    const { body } = await this.#recipient.expectMessage(({ from }) => from === letter.from);
    if (body !== letter.body) throw new Error(`Expected "${letter.body}": "${body}" came`);
  }

  /** Sends a message from `sender`, and claims it at the recipient. */
  async expectOf(sender: ChatClient): Promise<void> {
    await this.expect(await this.sendOf(sender));
  }
}
