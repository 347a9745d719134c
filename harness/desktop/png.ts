import { crc32 } from "node:zlib";
import { joinBytes } from "../net/join_bytes.ts";

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
const BITS_PER_SAMPLE = 8;
const RGB = 2;

/** A picture as rows of three bytes a pixel: red, green, blue. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
}

/** Encodes a picture as a PNG file (ISO/IEC 15948). */
export async function encodePng({ width, height, rgb }: Picture): Promise<Uint8Array> {
  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, width);
  header.setUint32(4, height);
  header.setUint8(8, BITS_PER_SAMPLE);
  header.setUint8(9, RGB);
  const rows = new Uint8Array(height * (1 + 3 * width)); // each row begins with 0: no filter
  for (let y = 0; y < height; y++) {
    rows.set(rgb.subarray(3 * y * width, 3 * (y + 1) * width), y * (1 + 3 * width) + 1);
  }
  return joinBytes(
    SIGNATURE,
    chunk("IHDR", new Uint8Array(header.buffer)),
    chunk("IDAT", await deflate(rows)),
    chunk("IEND", new Uint8Array()),
  );
}

function chunk(type: string, data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(type), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc32(bytes.subarray(4, 8 + data.length)));
  return bytes;
}

async function deflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
