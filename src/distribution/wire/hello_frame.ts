import { FrameError, malformed } from "./frame_error.ts";
import {
  FRAME_HEADER_BYTES,
  FRAME_TYPE,
  HIGHEST_VERSION,
  LOWEST_VERSION,
  MINOR_VERSION,
} from "./frame_type.ts";
import {
  checkInteger,
  readU16,
  readU32,
  readU53,
  writeU16,
  writeU32,
  writeU53,
} from "./integers.ts";
import { maxTextBytes, readText, writeText } from "./text.ts";

/** First frame on a link, both ways; the layout up to `lastNumber` is the same in every version. */
export interface Hello {
  /** Protocol versions that the writer speaks, both ends included; 1 to 255. */
  readonly lowestVersion: number;
  readonly highestVersion: number;
  /** Additions within the highest version; never a reason to refuse. */
  readonly minorVersion: number;
  /** Incarnation of the writing process; an integer in [1, 2^53). */
  readonly process: number;
  /** The dialler's lane, by a number of its own choice below 2^32; the acceptor repeats it. */
  readonly lane: number;
  /**
   * From the acceptor: the last number that it has received on this lane. From the dialler: the
   * last number that it will not send (again); the next number follows it.
   */
  readonly lastNumber: number;
  /** Id of the datacenter's data, as kept in its Redis; empty while not known. */
  readonly datacenterId: string;
  readonly localHost: string;
  readonly nodeName: string;
}

/** Largest HELLO accepted; larger than any that this build writes. */
export const MAX_HELLO_BYTES = 4096;

/** "CWLK", which tells another protocol apart from a broken frame. */
const MAGIC = 0x43574c4b;
const FIXED_BYTES = 34;
const MAX_TEXT_BYTES = 1023;

/** The versions of this build, for `Hello`. */
export const OUR_VERSIONS = {
  lowestVersion: LOWEST_VERSION,
  highestVersion: HIGHEST_VERSION,
  minorVersion: MINOR_VERSION,
} as const;

/** A HELLO frame. Texts are at most 1023 bytes each. */
export function helloFrame(hello: Hello): Uint8Array {
  const texts = [hello.datacenterId, hello.localHost, hello.nodeName];
  const room = texts.reduce((sum, text) => sum + maxTextBytes(text) + 2, FIXED_BYTES);
  for (const integer of [hello.process, hello.lastNumber]) {
    checkInteger(integer, Number.MAX_SAFE_INTEGER);
  }
  const frame = new Uint8Array(room);
  frame[4] = FRAME_TYPE.hello;
  writeU32(frame, 5, MAGIC);
  frame[9] = hello.lowestVersion;
  frame[10] = hello.highestVersion;
  frame[11] = hello.minorVersion;
  frame[12] = 0;
  writeU53(frame, 14, hello.process);
  writeU32(frame, 22, hello.lane);
  writeU53(frame, 26, hello.lastNumber);
  let at = FIXED_BYTES;
  for (const text of texts) {
    const end = writeText(frame, at + 2, text);
    if (end - at - 2 > MAX_TEXT_BYTES) {
      throw new RangeError(`Cannot encode HELLO text of ${end - at - 2} bytes: the limit is 1023`);
    }
    writeU16(frame, at, end - at - 2);
    at = end;
  }
  writeU32(frame, 0, at - 4);
  return frame.subarray(0, at);
}

/**
 * Reads the HELLO frame at [`start`, `end`). Bytes after its fields come from a newer minor version
 * and are ignored.
 * @throws FrameError
 */
export function decodeHello(buffer: Uint8Array, start: number, end: number): Hello {
  if (end - start < FRAME_HEADER_BYTES + 4 || readU32(buffer, start + 5) !== MAGIC) {
    throw new FrameError("link/hello-expected", "Cannot read HELLO frame: it does not begin CWLK");
  }
  if (end - start < FIXED_BYTES) throw malformed("HELLO", "it is cut short");
  const lowestVersion = buffer[start + 9]!;
  const highestVersion = buffer[start + 10]!;
  const process = readU53(buffer, start + 14);
  const lastNumber = readU53(buffer, start + 26);
  if (lowestVersion === 0 || highestVersion < lowestVersion) {
    throw malformed("HELLO", `${lowestVersion} to ${highestVersion} is no range of versions`);
  }
  if (!process || lastNumber === undefined) {
    throw malformed("HELLO", "an integer is not below 2^53, or its process is 0");
  }
  const texts: string[] = [];
  let at = start + FIXED_BYTES;
  for (const field of ["datacenter id", "local host", "node name"]) {
    const textEnd = at + 2 <= end ? at + 2 + readU16(buffer, at) : end + 1;
    if (textEnd > end) throw malformed("HELLO", "it is cut short");
    const text = textEnd - at - 2 <= MAX_TEXT_BYTES ? readText(buffer, at + 2, textEnd) : undefined;
    if (text === undefined || (text === "" && field !== "datacenter id")) {
      throw malformed("HELLO", `its ${field} is empty, too long or not UTF-8`);
    }
    texts.push(text);
    at = textEnd;
  }
  return {
    lowestVersion,
    highestVersion,
    minorVersion: buffer[start + 11]!,
    process,
    lane: readU32(buffer, start + 22),
    lastNumber,
    datacenterId: texts[0]!,
    localHost: texts[1]!,
    nodeName: texts[2]!,
  };
}

/** Returns the version that two peers speak; undefined when they have none in common. */
export function commonVersion(
  peer: Pick<Hello, "lowestVersion" | "highestVersion">,
  ours: Pick<Hello, "lowestVersion" | "highestVersion"> = OUR_VERSIONS,
): number | undefined {
  const highest = Math.min(peer.highestVersion, ours.highestVersion);
  return highest < Math.max(peer.lowestVersion, ours.lowestVersion) ? undefined : highest;
}
