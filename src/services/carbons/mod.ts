export { CARBONS_NAMESPACE } from "./carbon.ts";
export type { CarbonsDeps, CarbonSession } from "./carbons.ts";
export { Carbons } from "./carbons.ts";
