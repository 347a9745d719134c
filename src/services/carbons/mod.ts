export type { CarbonsDeps, CarbonSession } from "./carbons.ts";
export { BroughtCarbon } from "./carbon.ts";
export { Carbons } from "./carbons.ts";
