export type { CarbonsDeps, CarbonSession } from "./carbons.ts";
export { carbonOf } from "./carbon.ts";
export { Carbons } from "./carbons.ts";
