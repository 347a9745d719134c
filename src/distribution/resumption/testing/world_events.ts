import fc from "fast-check";
import type { RoutedWorld } from "./routed_world.ts";

/** Nodes of a world in which clients move. */
export const NODES = 4;

/** Place of a node in the list. */
export const NODE = fc.nat(NODES - 1);
export const SENDER = fc.nat(5);
const LEARN_MS = fc.constantFrom(0, 100, 1_000, 4_000);

/** Something that makes a world worse. Nodes are given by their places in the list. */
export type Trouble =
  | { readonly kind: "delay"; readonly from: number; readonly to: number; readonly delayMs: number }
  | {
    readonly kind: "cut";
    readonly one: number;
    readonly other: number;
    /** Milliseconds until each of the two knows that. */
    readonly learnMs: readonly [number, number];
    readonly healMs: number;
  }
  | { readonly kind: "die"; readonly at: number; readonly learnMs: number }
  /** The database of a node answers nothing for a while. */
  | { readonly kind: "hang"; readonly at: number; readonly forMs: number };

/** Some time that passes. */
export interface Pass {
  readonly kind: "pass";
  readonly forMs: number;
}

/** Trouble and time, each with its weight. */
export const WORLD_EVENTS: readonly fc.WeightedArbitrary<Trouble | Pass>[] = [
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("delay"),
      from: NODE,
      to: NODE,
      delayMs: fc.constantFrom(0, 50, 300, 1_500),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("cut"),
      one: NODE,
      other: NODE,
      learnMs: fc.tuple(LEARN_MS, LEARN_MS),
      healMs: fc.constantFrom(100, 1_000, 6_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("die"), at: NODE, learnMs: LEARN_MS }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("hang"),
      at: NODE,
      forMs: fc.constantFrom(300, 2_500, 7_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("pass"),
      forMs: fc.constantFrom(50, 200, 1_000, 3_000),
    }),
  },
];

/** True for an event that makes a world worse. */
export function isTrouble(event: { readonly kind: string }): event is Trouble {
  return event.kind === "delay" || event.kind === "cut" || event.kind === "die" ||
    event.kind === "hang";
}

/** Makes a world worse. */
export function causeTrouble(world: RoutedWorld, event: Trouble): void {
  const { nodes } = world;
  switch (event.kind) {
    case "delay":
      return world.delay(nodes[event.from]!, nodes[event.to]!, event.delayMs);
    case "cut": {
      const [one, other] = [nodes[event.one]!, nodes[event.other]!];
      if (one !== other) world.cut([one, other], event.learnMs, event.healMs);
      return;
    }
    case "die":
      return world.kill(nodes[event.at]!, event.learnMs);
    case "hang":
      return world.hang(nodes[event.at]!, event.forMs);
    default:
      return event satisfies never;
  }
}
