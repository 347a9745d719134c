import { RawClient } from "../../harness/clients/mod.ts";
import type { ClientPlan } from "./load_protocol.ts";
import { StampScanner } from "./stamp_scanner.ts";

const ENABLE = "<iq id='carbons' type='set'><enable xmlns='urn:xmpp:carbons:2'/></iq>";

/** A second device of a sender, which gets a carbon of each message (XEP-0280) and counts them. */
export class CarbonDevice implements AsyncDisposable {
  readonly #client: RawClient;
  readonly #reading: Promise<void>;
  #carbons = 0;
  #lastStamp = 0;
  #failure: Error | undefined;

  private constructor(client: RawClient) {
    this.#client = client;
    this.#reading = this.#read();
  }

  static async login(plan: ClientPlan): Promise<CarbonDevice> {
    const client = await RawClient.login(plan);
    await client.send(ENABLE);
    await client.socket.readUntil("id='carbons'");
    await client.socket.readUntil(">");
    return new CarbonDevice(client);
  }

  /** Carbons that have come so far. */
  get carbons(): number {
    return this.#carbons;
  }

  /** Why this device can go on no longer. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const scanner = new StampScanner((stamp) => {
      if (stamp < this.#lastStamp) this.#failure ??= new Error("Carbons arrived out of order");
      this.#lastStamp = stamp;
      this.#carbons++;
    });
    await this.#client.socket.consume((chunk) => scanner.push(chunk));
    this.#failure ??= new Error("The server has closed a device's connection");
  }
}
