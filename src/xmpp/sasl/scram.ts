import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import type { ScramHash, ScramSecret } from "./credentials.ts";
import { digest, hmac } from "./derive_credentials.ts";
import type { SaslCondition } from "./sasl_condition.ts";

// One SCRAM exchange (RFC 5802 §5), server side, with or without channel binding:
//
//   client-first  ->  parseScramFirst    (look the account up)
//                 <-  challengeScram     server-first
//   client-final  ->  verifyScramFinal
//                 <-                     server-final, in <success/>

/** Channel binding that is possible on a connection (RFC 5056). */
export interface ChannelBinding {
  /** Its registered name. */
  readonly type: "tls-server-end-point";
  /** The bytes that name the connection's TLS, the same for client and server. */
  readonly data: Uint8Array;
}

/** Channel binding of one exchange. */
export interface ScramBinding {
  /** Binding that the connection allows, and that the client was therefore offered. */
  readonly offered: ChannelBinding | undefined;
  /** True for a -PLUS mechanism: the client must bind. */
  readonly isRequired: boolean;
}

/** Content of a client-first message. */
export interface ScramFirst {
  /** Header, `n,,` or `p=tls-server-end-point,a=…,`, that the client-final message must repeat. */
  readonly gs2Header: string;
  readonly authzid: string | undefined;
  /** Name as the client sent it, unescaped and not yet prepared. */
  readonly username: string;
  readonly clientNonce: string;
  /** The part of the message that is signed. */
  readonly bare: string;
  /** Data of the channel binding that the client uses; undefined when it uses none. */
  readonly channelData: Uint8Array | undefined;
}

/** State of an exchange that waits for its client-final message. */
export interface ScramChallenge {
  /** The server-first message to send. */
  readonly message: string;
  readonly hash: ScramHash;
  readonly first: ScramFirst;
  readonly nonce: string;
  readonly secret: ScramSecret;
}

/** The outcome of a step that can fail. */
export type ScramOutcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly condition: SaslCondition };

const MALFORMED = { ok: false, condition: "malformed-request" } as const;

// RFC 5802 §7: `m=` (a mandatory extension) must fail the exchange, so no pattern matches it.
const CLIENT_FIRST =
  /^(n|y|p=[A-Za-z0-9.-]+),(?:a=((?:[^\0,=]|=2C|=3D)+))?,(n=((?:[^\0,=]|=2C|=3D)+),r=([\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-ln-z]=[^\0,]+)*)$/u;
const CLIENT_FINAL =
  /^(c=([A-Za-z0-9+/=]*),r=([\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-bd-ln-oqs-z]=[^\0,]+)*),p=([A-Za-z0-9+/=]+)$/u;

/**
 * Reads a client-first message. Its flag must fit what the client was offered (RFC 5802 §6):
 *
 * | flag | meaning | without -PLUS | with -PLUS |
 * |---|---|---|---|
 * | `n` | the client cannot bind | accepted | `malformed-request` |
 * | `y` | it could, and believes that we cannot | `mechanism-too-weak` where we can | `malformed-request` |
 * | `p=` | it binds by this type | `malformed-request` | accepted for our own type |
 *
 * A client with `y` has not seen the -PLUS mechanisms that we offered: somebody between us has removed
 * them. The client-final message repeats the flag under the client's proof, so nobody can change it.
 */
export function parseScramFirst(
  message: string,
  { offered, isRequired }: ScramBinding = { offered: undefined, isRequired: false },
): ScramOutcome<ScramFirst> {
  const match = CLIENT_FIRST.exec(message);
  if (match === null) return MALFORMED;
  const flag = match[1]!;
  const isBound = flag.startsWith("p=");
  if (isBound !== isRequired) return MALFORMED;
  if (isBound && (offered === undefined || flag !== `p=${offered.type}`)) return MALFORMED;
  if (flag === "y" && offered !== undefined) return { ok: false, condition: "mechanism-too-weak" };
  const bare = match[3]!;
  return {
    ok: true,
    value: {
      channelData: isBound ? offered?.data : undefined,
      gs2Header: message.slice(0, message.length - bare.length),
      authzid: match[2] === undefined ? undefined : unescapeName(match[2]),
      username: unescapeName(match[4]!),
      clientNonce: match[5]!,
      bare,
    },
  };
}

/** Makes the server-first message; `serverNonce` is fresh, printable and holds no comma. */
export function challengeScram(
  first: ScramFirst,
  options: { readonly hash: ScramHash; readonly secret: ScramSecret; readonly serverNonce: string },
): ScramChallenge {
  const { hash, secret } = options;
  const nonce = first.clientNonce + options.serverNonce;
  const salt = Buffer.from(secret.salt).toString("base64");
  return { message: `r=${nonce},s=${salt},i=${secret.iterations}`, hash, first, nonce, secret };
}

/** Checks the client's proof; the value is the server-final message, which proves us to the client. */
export function verifyScramFinal(
  challenge: ScramChallenge,
  message: string,
): ScramOutcome<string> {
  const match = CLIENT_FINAL.exec(message);
  if (match === null) return MALFORMED;
  const [, unproven, binding, nonce, proofText] = match;
  const { hash, secret, first } = challenge;
  const proof = new Uint8Array(Buffer.from(proofText!, "base64"));
  if (binding !== bindingOf(first)) {
    // Without channel binding it only repeats a header that the client has made itself.
    return first.channelData === undefined ? MALFORMED : { ok: false, condition: "not-authorized" };
  }
  if (nonce !== challenge.nonce || proof.length !== secret.storedKey.length) {
    return { ok: false, condition: "not-authorized" };
  }
  const signed = `${first.bare},${challenge.message},${unproven}`;
  const clientKey = xor(proof, hmac(hash, secret.storedKey, signed));
  if (!timingSafeEqual(digest(hash, clientKey), secret.storedKey)) {
    return { ok: false, condition: "not-authorized" };
  }
  const signature = Buffer.from(hmac(hash, secret.serverKey, signed)).toString("base64");
  return { ok: true, value: `v=${signature}` };
}

/** Returns attribute `c` that the client-final message must have: header and channel (RFC 5802 §5.1). */
function bindingOf({ gs2Header, channelData }: ScramFirst): string {
  const header = Buffer.from(gs2Header, "utf8");
  return (channelData === undefined ? header : Buffer.concat([header, channelData]))
    .toString("base64");
}

function unescapeName(escaped: string): string {
  return escaped.replaceAll("=2C", ",").replaceAll("=3D", "=");
}

function xor(left: Uint8Array, right: Uint8Array): Uint8Array {
  return left.map((byte, index) => byte ^ right[index]!);
}
