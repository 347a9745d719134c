import { createHmac, randomBytes } from "node:crypto";
import type { ScramCredentials, ScramHash, ScramSecret } from "./credentials.ts";
import { HASH_BYTES, SCRAM_SALT_BYTES } from "./derive_credentials.ts";

/** One for the process, so that an account that is not there looks alike on every port. */
const PROCESS_KEY: Uint8Array = randomBytes(32);

/**
 * Credentials for accounts that do not exist, so that asking for one looks like asking for any other
 * (RFC 5802 §9): same name, same salt, as long as the process lives; keys that no password has.
 */
export class FakeCredentials {
  readonly #key: Uint8Array;
  readonly #iterations: number;

  /** @param iterations those that real accounts are made with, else the difference shows */
  constructor(iterations: number, key: Uint8Array = PROCESS_KEY) {
    this.#iterations = iterations;
    this.#key = key;
  }

  /** The same for the same name. */
  credentialsOf(name: string): ScramCredentials {
    return { sha1: this.#secret("SHA-1", name), sha256: this.#secret("SHA-256", name) };
  }

  #secret(hash: ScramHash, name: string): ScramSecret {
    return {
      salt: this.#bytes(`salt ${hash} ${name}`, SCRAM_SALT_BYTES),
      iterations: this.#iterations,
      storedKey: this.#bytes(`stored ${hash} ${name}`, HASH_BYTES[hash]),
      serverKey: this.#bytes(`server ${hash} ${name}`, HASH_BYTES[hash]),
    };
  }

  #bytes(label: string, byteLength: number): Uint8Array {
    return new Uint8Array(
      createHmac("sha256", this.#key).update(label, "utf8").digest().subarray(0, byteLength),
    );
  }
}
