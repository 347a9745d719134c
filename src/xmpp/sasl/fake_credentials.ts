import { createHmac, randomBytes } from "node:crypto";
import type { CredentialShape, SecretShape } from "./credential_shapes.ts";
import { CredentialShapes, shapeOf } from "./credential_shapes.ts";
import type {
  CompleteCredentials,
  ScramCredentials,
  ScramHash,
  ScramSecret,
} from "./credentials.ts";
import { HASH_BYTES } from "./derive_credentials.ts";

/** One key for the whole process, so that a nonexistent account looks the same on every port. */
const PROCESS_KEY: Uint8Array = randomBytes(32);

/** Bytes that an HMAC gives. */
const BLOCK_BYTES = 32;

/** Length of salts that are the text of a UUID, as Prosody makes them. */
const UUID_TEXT_BYTES = 36;

/** Secrets that a login is checked against: both, whatever the account has. */
export interface LoginSecrets extends CompleteCredentials {
  /** Hash function with which a plain password is checked. */
  readonly plainHash: ScramHash;
}

/**
 * Credentials for accounts that do not exist, so that they look like those of real accounts (RFC 5802
 * §9). The same name at the same host has the same salt as long as the process lives; at another host it
 * has another one, as accounts do. No password matches the keys.
 *
 * A key that an account lacks is made up, too: a login by it fails like a wrong password.
 */
export class FakeCredentials {
  readonly #key: Uint8Array;
  readonly #shapes: CredentialShapes;

  /** @param shapes those of real accounts, or their rounds; others would reveal the difference */
  constructor(shapes: CredentialShapes | number, key: Uint8Array = PROCESS_KEY) {
    this.#shapes = typeof shapes === "number" ? new CredentialShapes(shapes) : shapes;
    this.#key = key;
  }

  /**
   * Returns the same secrets for the same name and domainpart, while their shape is the same. Takes the
   * same steps whether or not there are `real` credentials.
   *
   * @param real the credentials of the account; undefined without an account
   */
  secretsOf(name: string, domainpart: string, real: ScramCredentials | undefined): LoginSecrets {
    const account = `${domainpart} ${name}`; // no domainpart has a space in it
    const [high = 0, low = 0] = this.#bytes(`rounds ${account}`, 2);
    const shown = this.#shapes.at((256 * high + low) / 65_536);
    const shape = real === undefined ? shown : shapeOf(real);
    const [sha1, sha256] = bothOf(shape);
    const fake = {
      sha1: this.#secret("SHA-1", account, {
        ...sha1,
        saltOf: shape.sharesSalt ? "both" : "SHA-1",
      }),
      sha256: this.#secret("SHA-256", account, {
        ...sha256,
        saltOf: shape.sharesSalt ? "both" : "SHA-256",
      }),
    };
    return {
      sha1: real?.sha1 ?? fake.sha1,
      sha256: real?.sha256 ?? fake.sha256,
      plainHash: shape.sha256 === undefined ? "SHA-1" : "SHA-256",
    };
  }

  #secret(
    hash: ScramHash,
    account: string,
    { iterations, saltBytes, saltOf }: SecretShape & { readonly saltOf: string },
  ): ScramSecret {
    return {
      // A real account that gets other rounds has got a new password, and with it a new salt.
      salt: this.#salt(`salt ${saltOf} ${iterations} ${account}`, saltBytes),
      iterations,
      storedKey: this.#bytes(`stored ${hash} ${account}`, HASH_BYTES[hash]),
      serverKey: this.#bytes(`server ${hash} ${account}`, HASH_BYTES[hash]),
    };
  }

  #salt(label: string, byteLength: number): Uint8Array {
    const bytes = this.#bytes(label, byteLength);
    return byteLength === UUID_TEXT_BYTES ? new TextEncoder().encode(uuidOf(bytes)) : bytes;
  }

  #bytes(label: string, byteLength: number): Uint8Array {
    const bytes = new Uint8Array(byteLength);
    for (let at = 0; at < byteLength; at += BLOCK_BYTES) {
      const block = createHmac("sha256", this.#key)
        .update(at === 0 ? label : `${label} ${at}`, "utf8").digest();
      bytes.set(block.subarray(0, byteLength - at), at);
    }
    return bytes;
  }
}

/** Returns the shapes of both secrets. A missing one looks like the one that is there. */
function bothOf({ sha1, sha256 }: CredentialShape): readonly [SecretShape, SecretShape] {
  const one = sha1 ?? sha256;
  const other = sha256 ?? sha1;
  if (one === undefined || other === undefined) {
    throw new TypeError("Cannot use credentials without any key");
  }
  return [one, other];
}

/** Returns the text of a random UUID (RFC 9562 §5.4) made of these bytes. */
function uuidOf(bytes: Uint8Array): string {
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const variant = "89ab"[bytes[0]! % 4]!;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(12, 15)}-${variant}` +
    `${hex.slice(15, 18)}-${hex.slice(18, 30)}`;
}
