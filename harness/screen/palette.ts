/** Colours for people; without colour every one of them leaves the text alone. */
export interface Palette {
  bold(text: string): string;
  dim(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  red(text: string): string;
  cyan(text: string): string;
}

/** `isColoured` is false off a terminal and under NO_COLOR. */
export function palette(isColoured: boolean): Palette {
  const paint = (on: number, off: number) => (text: string) =>
    isColoured ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  return {
    bold: paint(1, 22),
    dim: paint(2, 22),
    green: paint(32, 39),
    yellow: paint(33, 39),
    red: paint(31, 39),
    cyan: paint(36, 39),
  };
}
