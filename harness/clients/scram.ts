import { Buffer } from "node:buffer";
import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from "node:crypto";

/** The SASL mechanisms that a raw client can speak. */
export type RawMechanism = "PLAIN" | "SCRAM-SHA-1" | "SCRAM-SHA-256";

/** Name and password as the account has them. */
export interface RawCredentials {
  readonly localpart: string;
  readonly password: string;
}

/** The message of PLAIN (RFC 4616), base64. */
export function plainResponse(credentials: RawCredentials): string {
  return btoaUtf8(`\0${credentials.localpart}\0${credentials.password}`);
}

/** Channel binding of a SCRAM exchange (RFC 5802 §6), or the pretence of one. */
export interface RawBinding {
  /** Header of the first message: `n,,`, `y,,` or `p=tls-server-end-point,,`. */
  readonly gs2Header: string;
  /** Bytes that name the connection; none for `n` and `y`. */
  readonly channelData?: Uint8Array;
}

/**
 * The client's side of one SCRAM exchange (RFC 5802, RFC 7677), written apart from the server's so
 * that each checks the other. Passwords and names are sent as they are: SASLprep of ASCII.
 */
export class ScramExchange {
  readonly #digest: string;
  readonly #password: string;
  readonly #clientFirstBare: string;
  readonly #nonce = randomBytes(18).toString("base64");
  readonly #binding: RawBinding;
  #expectedSignature: Uint8Array | undefined;

  constructor(
    mechanism: "SCRAM-SHA-1" | "SCRAM-SHA-256",
    credentials: RawCredentials,
    binding: RawBinding = { gs2Header: "n,," },
  ) {
    this.#digest = mechanism === "SCRAM-SHA-1" ? "sha1" : "sha256";
    this.#binding = binding;
    this.#password = credentials.password;
    const name = credentials.localpart.replaceAll("=", "=3D").replaceAll(",", "=2C");
    this.#clientFirstBare = `n=${name},r=${this.#nonce}`;
  }

  /** Base64 of the first message. */
  first(): string {
    return btoaUtf8(this.#binding.gs2Header + this.#clientFirstBare);
  }

  /** Base64 of the answer to the server's first message. */
  final(challenge: string): string {
    const serverFirst = atobUtf8(challenge);
    const fields = parseFields(serverFirst);
    const nonce = fields.get("r") ?? "";
    if (!nonce.startsWith(this.#nonce) || nonce === this.#nonce) {
      throw new Error(`Cannot trust the SCRAM challenge: it does not extend our nonce`);
    }
    const salt = Buffer.from(fields.get("s") ?? "", "base64");
    const iterations = Number(fields.get("i"));
    const size = this.#digest === "sha1" ? 20 : 32;
    const salted = saltedPassword(this.#password, { salt, iterations, size, digest: this.#digest });
    const clientKey = this.#hmac(salted, "Client Key");
    const storedKey = createHash(this.#digest).update(clientKey).digest();
    const { gs2Header, channelData = new Uint8Array() } = this.#binding;
    const bound = Buffer.concat([Buffer.from(gs2Header), channelData]).toString("base64");
    const withoutProof = `c=${bound},r=${nonce}`;
    const authMessage = `${this.#clientFirstBare},${serverFirst},${withoutProof}`;
    const proof = Buffer.from(this.#hmac(storedKey, authMessage));
    for (let i = 0; i < proof.length; i++) proof[i]! ^= clientKey[i]!;
    this.#expectedSignature = this.#hmac(this.#hmac(salted, "Server Key"), authMessage);
    return btoaUtf8(`${withoutProof},p=${proof.toString("base64")}`);
  }

  /** Throws unless the server has proved that it knows the password too. */
  verify(success: string): void {
    const signature = Buffer.from(parseFields(atobUtf8(success)).get("v") ?? "", "base64");
    const expected = this.#expectedSignature;
    if (
      expected === undefined || signature.length !== expected.length ||
      !timingSafeEqual(signature, expected)
    ) throw new Error("Cannot trust the server: its SCRAM signature is wrong");
  }

  #hmac(key: Uint8Array, text: string): Buffer {
    return createHmac(this.#digest, key).update(text).digest();
  }
}

/** The password that was salted last: thousands of clients of a bench share one (RFC 5802 §9). */
let lastSalted: { readonly key: string; readonly salted: Buffer } | undefined;

function saltedPassword(
  password: string,
  { salt, iterations, size, digest }: {
    readonly salt: Buffer;
    readonly iterations: number;
    readonly size: number;
    readonly digest: string;
  },
): Buffer {
  const key = JSON.stringify([password, salt.toString("base64"), iterations, digest]);
  if (lastSalted?.key !== key) {
    lastSalted = { key, salted: pbkdf2Sync(password, salt, iterations, size, digest) };
  }
  return lastSalted.salted;
}

function parseFields(message: string): Map<string, string> {
  return new Map(
    message.split(",").map((field) => [field.slice(0, 1), field.slice(2)] as [string, string]),
  );
}

function btoaUtf8(text: string): string {
  return Buffer.from(text).toString("base64");
}

function atobUtf8(text: string): string {
  return Buffer.from(text, "base64").toString();
}
