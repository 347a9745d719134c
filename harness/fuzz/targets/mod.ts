import type { FuzzTarget } from "../fuzz_target.ts";
import { FRAMES_TARGET } from "./frames.ts";
import { XML_TARGET } from "./xml.ts";

/** Targets that run within the fuzzer's own process. */
export const TARGETS: readonly FuzzTarget[] = [XML_TARGET, FRAMES_TARGET];

/** The target of that name. @throws RangeError */
export function findTarget(name: string): FuzzTarget {
  const target = TARGETS.find((each) => each.name === name);
  if (target === undefined) throw new RangeError(`Cannot find fuzz target ${name}`);
  return target;
}
