import { Buffer } from "node:buffer";
import { ByteReader } from "./bytes.ts";

/** Request of a client that logs in. */
export interface Login {
  readonly tdsVersion: number;
  readonly packetBytes: number;
  readonly username: string;
  readonly password: string;
  readonly database: string;
}

/** Values by which client and server agree on encryption (MS-TDS 2.2.6.5). */
export const ENCRYPTION = { off: 0, on: 1, notSupported: 2, required: 3 } as const;

const [ENCRYPTION_OPTION, TERMINATOR] = [1, 0xff];
/** Offset of the first pair of offset and length in a login. */
const FIRST_FIELD = 36;
const [USERNAME, PASSWORD, DATABASE] = [1, 2, 8];

/** Returns the encryption that a client asks for before it logs in. */
export function encryptionOf(data: Uint8Array): number {
  for (let at = 0; at + 5 <= data.length && data[at] !== TERMINATOR; at += 5) {
    if (data[at] !== ENCRYPTION_OPTION) continue;
    return data[(data[at + 1]! << 8) | data[at + 2]!] ?? ENCRYPTION.notSupported;
  }
  return ENCRYPTION.notSupported;
}

/** Returns the answer to the message before the login. */
export function preloginAnswer(version: readonly number[], encryption: number): Uint8Array {
  const [major = 0, minor = 0, build = 0] = version;
  const values = [
    [0, [major, minor, build >> 8, build & 0xff, 0, 0]],
    [ENCRYPTION_OPTION, [encryption]],
    [2, [0]],
    [3, []],
    [4, [0]],
  ] as const;
  const options: number[] = [];
  const data: number[] = [];
  const start = values.length * 5 + 1;
  for (const [option, bytes] of values) {
    const at = start + data.length;
    options.push(option, at >> 8, at & 0xff, 0, bytes.length);
    data.push(...bytes);
  }
  return Uint8Array.from([...options, TERMINATOR, ...data]);
}

/** @throws RangeError for a message that ends too early */
export function parseLogin(data: Uint8Array): Login {
  const reader = new ByteReader(data);
  reader.skip(4);
  const tdsVersion = reader.u32();
  const packetBytes = reader.u32();
  const field = (index: number) => {
    const place = new ByteReader(data);
    place.skip(FIRST_FIELD + 4 * index);
    const [at, units] = [place.u16(), place.u16()];
    const content = new ByteReader(data);
    content.skip(at);
    return content.bytes(2 * units);
  };
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("utf16le");
  // Each byte of a password has its halves exchanged and some bits turned over.
  const password = field(PASSWORD).map((byte) => {
    const plain = byte ^ 0xa5;
    return ((plain << 4) | (plain >> 4)) & 0xff;
  });
  return {
    tdsVersion,
    packetBytes,
    username: text(field(USERNAME)),
    password: text(password),
    database: text(field(DATABASE)),
  };
}
