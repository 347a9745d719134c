import { Buffer } from "node:buffer";

const ENCODER = new TextEncoder();
/** Longest argument whose head is made in advance. */
const SHORT_BYTES = 256;

/** Text before an argument of each length, including the end of the line before. */
const HEADS = Array.from({ length: SHORT_BYTES }, (_, length) => `\r\n$${length}\r\n`);

/** Encodes commands as Redis reads them (RESP2, arrays of bulk strings), one after the other. */
export function encodeCommands(commands: readonly (readonly string[])[]): Uint8Array<ArrayBuffer> {
  // Nearly all text is ASCII, where units are bytes. Otherwise the result is longer than the text.
  const text = textOf(commands, (argument) => argument.length);
  const bytes = ENCODER.encode(text);
  if (bytes.length === text.length) return bytes;
  return ENCODER.encode(textOf(commands, (argument) => Buffer.byteLength(argument)));
}

function textOf(
  commands: readonly (readonly string[])[],
  byteLength: (argument: string) => number,
): string {
  let text = "";
  for (let i = 0; i < commands.length; i++) {
    const command = commands[i]!;
    text += `*${command.length}`;
    for (let k = 0; k < command.length; k++) {
      const length = byteLength(command[k]!);
      text += HEADS[length] ?? `\r\n$${length}\r\n`;
      text += command[k]!;
    }
    text += "\r\n";
  }
  return text;
}
