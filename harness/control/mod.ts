export type { ControlOptions } from "./control.ts";
export { controlCluster } from "./control.ts";
export { visitorAccounts } from "./visitors.ts";
