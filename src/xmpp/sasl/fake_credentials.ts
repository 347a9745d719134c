import { createHmac, randomBytes } from "node:crypto";
import type { ScramCredentials, ScramHash, ScramSecret } from "./credentials.ts";
import { HASH_BYTES, SCRAM_SALT_BYTES } from "./derive_credentials.ts";
import { ScramRounds } from "./scram_rounds.ts";

/** One key for the whole process, so that a nonexistent account looks the same on every port. */
const PROCESS_KEY: Uint8Array = randomBytes(32);

/**
 * Credentials for accounts that do not exist, so that they look like those of real accounts (RFC 5802
 * §9). The same name at the same host has the same salt as long as the process lives; at another host it
 * has another one, as accounts do. No password matches the keys.
 */
export class FakeCredentials {
  readonly #key: Uint8Array;
  readonly #rounds: ScramRounds;

  /** @param rounds the rounds of real accounts; other numbers would reveal the difference */
  constructor(rounds: ScramRounds | number, key: Uint8Array = PROCESS_KEY) {
    this.#rounds = typeof rounds === "number" ? new ScramRounds(rounds) : rounds;
    this.#key = key;
  }

  /** Returns the same credentials for the same name and domainpart, while its rounds are the same. */
  credentialsOf(name: string, domainpart: string): ScramCredentials {
    const account = `${domainpart} ${name}`; // no domainpart has a space in it
    const [high = 0, low = 0] = this.#bytes(`rounds ${account}`, 2);
    const iterations = this.#rounds.at((256 * high + low) / 65_536);
    return {
      sha1: this.#secret("SHA-1", account, iterations),
      sha256: this.#secret("SHA-256", account, iterations),
    };
  }

  #secret(hash: ScramHash, account: string, iterations: number): ScramSecret {
    return {
      // A real account that gets other rounds has got a new password, and with it a new salt.
      salt: this.#bytes(`salt ${hash} ${iterations} ${account}`, SCRAM_SALT_BYTES),
      iterations,
      storedKey: this.#bytes(`stored ${hash} ${account}`, HASH_BYTES[hash]),
      serverKey: this.#bytes(`server ${hash} ${account}`, HASH_BYTES[hash]),
    };
  }

  #bytes(label: string, byteLength: number): Uint8Array {
    return new Uint8Array(
      createHmac("sha256", this.#key).update(label, "utf8").digest().subarray(0, byteLength),
    );
  }
}
