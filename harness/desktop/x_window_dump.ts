import type { Picture } from "./png.ts";

/** Fields of the header that are read here, by their place among its 32-bit words (XWDFile.h). */
const HEADER_BYTES = 0;
const VERSION = 1;
const WIDTH = 4;
const HEIGHT = 5;
const BYTE_ORDER = 7;
const BITS_PER_PIXEL = 11;
const BYTES_PER_LINE = 12;
const RED_MASK = 14;
const COLORS = 19;

const BYTES_PER_COLOR = 12;
/** The header of an XWD file is big-endian, its pixels are as the server has them: like this here. */
const EXPECTED = [[VERSION, 7], [BYTE_ORDER, 0], [BITS_PER_PIXEL, 32], [RED_MASK, 0xff0000]];

/**
 * Decodes the screen that Xvfb keeps as an XWD file.
 * @throws RangeError for another depth or order of pixels than a screen of depth 24 has
 */
export function decodeXWindowDump(file: Uint8Array): Picture {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const word = (index: number) => view.getUint32(4 * index);
  for (const [index, expected] of EXPECTED as [number, number][]) {
    if (word(index) === expected) continue;
    throw new RangeError(
      `Cannot read a screen: word ${index} of its header is ${word(index)}, not ${expected}`,
    );
  }
  const [width, height, bytesPerLine] = [word(WIDTH), word(HEIGHT), word(BYTES_PER_LINE)];
  const pixels = word(HEADER_BYTES) + BYTES_PER_COLOR * word(COLORS);
  const rgb = new Uint8Array(3 * width * height);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at += 3) {
      const pixel = view.getUint32(pixels + y * bytesPerLine + 4 * x, true);
      rgb[at] = pixel >> 16;
      rgb[at + 1] = pixel >> 8;
      rgb[at + 2] = pixel;
    }
  }
  return { width, height, rgb };
}
