export type { CarbonsDeps, CarbonSession } from "./carbons.ts";
export { Carbons } from "./carbons.ts";
