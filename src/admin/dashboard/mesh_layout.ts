/** Place of one datacenter on the map, in pixels. */
export interface Place {
  readonly x: number;
  readonly y: number;
  /** Side of the circle on which its label has room. */
  readonly side: "left" | "right" | "above" | "below";
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
    const x = center.x + radiusX * Math.cos(angle);
    const y = center.y + radiusY * Math.sin(angle);
    return { x, y, side: sideOf(angle) };
  });
  const spacing = count === 0 ? length : length / count;
  const labelLength = Math.max(4, Math.floor((labelRoom - 18) / CHARACTER_WIDTH));
  return { center, places, spacing, labelLength };
}

/** Labels near the top and bottom of the ring stand above and below; the others beside it. */
function sideOf(angle: number): Place["side"] {
  if (Math.abs(Math.sin(angle)) > 0.92) return Math.sin(angle) < 0 ? "above" : "below";
  return Math.cos(angle) < 0 ? "left" : "right";
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
