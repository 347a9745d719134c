/** Whole lines of a byte stream, parsed as JSON. The other end is a process of our own. */
export async function* readJsonLines<T>(stream: ReadableStream<Uint8Array>): AsyncGenerator<T> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream() as TextDecoding)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line) as T; // what both ends agree on
  }
}

/** `TextDecoderStream` is declared to take any buffer source, which pipes refuse to match. */
type TextDecoding = ReadableWritablePair<string, Uint8Array>;

/** `value` as one line. */
export function jsonLine(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${JSON.stringify(value)}\n`);
}
