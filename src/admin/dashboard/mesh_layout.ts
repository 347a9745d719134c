/** Place of one datacenter on the map, in pixels. */
export interface Place {
  readonly x: number;
  readonly y: number;
  /** Direction from the circle to its label, of length 1: away from the middle. */
  readonly outward: { readonly x: number; readonly y: number };
}

/** The map: the own datacenter in the middle, the others around it. */
export interface MeshLayout {
  readonly center: { readonly x: number; readonly y: number };
  readonly places: readonly Place[];
  /** Pixels between neighbours along the ring. */
  readonly spacing: number;
  /** Most characters of a label. */
  readonly labelLength: number;
}

const STEPS = 720;
/** Width of a character in the map's labels. */
const CHARACTER_WIDTH = 7.2;
const LABEL_ROOM = { wide: 120, narrow: 72 };
const LABEL_HEIGHT = 44;

/** Places `count` datacenters around the own one, at equal distances along an ellipse. */
export function layoutMesh(count: number, width: number, height: number): MeshLayout {
  const labelRoom = width < 560 ? LABEL_ROOM.narrow : LABEL_ROOM.wide;
  const center = { x: width / 2, y: height / 2 };
  const radiusX = Math.max(40, width / 2 - labelRoom);
  const radiusY = Math.max(40, height / 2 - LABEL_HEIGHT - 12);
  const { length, angleAt } = measureEllipse(radiusX, radiusY);
  const places = Array.from({ length: count }, (_, index): Place => {
    // Two lie beside the own one; more begin at the top.
    const start = count <= 2 ? 0.5 : 0.75;
    const angle = angleAt(((index / count + start) % 1) * length);
    const outward = { x: Math.cos(angle), y: Math.sin(angle) };
    return { x: center.x + radiusX * outward.x, y: center.y + radiusY * outward.y, outward };
  });
  const spacing = count === 0 ? length : length / count;
  const labelLength = Math.max(4, Math.floor((labelRoom - 18) / CHARACTER_WIDTH));
  return { center, places, spacing, labelLength };
}

/** Pixels around the middle that lines between two other datacenters keep clear of. */
const CENTER_ROOM = 44;
/** Pixels by which such a line bows out. */
const BOW = 62;

/** A line between two datacenters of the ring: a curve with one control point, and its middle. */
export interface Chord {
  readonly control: { readonly x: number; readonly y: number };
  readonly middle: { readonly x: number; readonly y: number };
}

type Point = Chord["middle"];

/** Returns the line from one place to another: straight, or bent around the own datacenter. */
export function chordOf(from: Point, to: Point, center: Point): Chord {
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  // A unit vector across the line, which points up, where the own label does not stand.
  let across = { x: (to.y - from.y) / length, y: (from.x - to.x) / length };
  if (across.y > 0) across = { x: -across.x, y: -across.y };
  const off = (middle.x - center.x) * across.x + (middle.y - center.y) * across.y;
  if (Math.abs(off) >= CENTER_ROOM) return { control: middle, middle };
  const bow = BOW - off;
  return {
    control: { x: middle.x + across.x * 2 * bow, y: middle.y + across.y * 2 * bow },
    middle: { x: middle.x + across.x * bow, y: middle.y + across.y * bow },
  };
}

/** Height of one line of a label, and the baseline of the first line below its top. */
const LINE_HEIGHT = 14;
const BASELINE = 11;
/** Pixels between a circle and its label. */
const LABEL_GAP = 12;

/** Returns where the label of a circle begins, ends, or has its middle. */
export function placeLabel(
  { x, y, outward }: Place,
  { radius, lines }: { readonly radius: number; readonly lines: number },
) {
  const gap = radius + LABEL_GAP;
  const height = lines * LINE_HEIGHT;
  const middle = y + outward.y * (gap + Math.abs(outward.y) * height / 2);
  // Beside the very top and bottom, labels of neighbours go apart.
  const anchor = Math.abs(outward.x) < 0.1 ? "middle" : outward.x < 0 ? "end" : "start";
  return { x: x + outward.x * gap, y: middle - height / 2 + BASELINE, anchor } as const;
}

/** Returns the length of an ellipse, and its angle after a distance along it. */
function measureEllipse(radiusX: number, radiusY: number) {
  const lengths = [0];
  let [lastX, lastY] = [radiusX, 0];
  for (let step = 1; step <= STEPS; step++) {
    const angle = (step / STEPS) * 2 * Math.PI;
    const [x, y] = [radiusX * Math.cos(angle), radiusY * Math.sin(angle)];
    lengths.push(lengths.at(-1)! + Math.hypot(x - lastX, y - lastY));
    [lastX, lastY] = [x, y];
  }
  const length = lengths.at(-1)!;
  const angleAt = (distance: number): number => {
    const step = lengths.findIndex((reached) => reached >= distance);
    return ((step === -1 ? STEPS : step) / STEPS) * 2 * Math.PI;
  };
  return { length, angleAt };
}

/** Returns the names without the labels that all of them end with: `dc1` of `dc1.example.com`. */
export function shortNames(names: readonly string[]): ReadonlyMap<string, string> {
  const parts = names.map((name) => name.split("."));
  let common = 0;
  const shortest = Math.min(...parts.map(({ length }) => length));
  while (
    common < shortest - 1 && new Set(parts.map((each) => each.at(-1 - common))).size === 1
  ) common++;
  return new Map(names.map((name, index) => {
    const own = parts[index]!;
    return [name, names.length < 2 ? own[0]! : own.slice(0, own.length - common).join(".")];
  }));
}

/** Shortens a label to `length` characters. */
export function cutLabel(label: string, length: number): string {
  return label.length <= length ? label : `${label.slice(0, length - 1)}…`;
}
