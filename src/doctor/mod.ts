export { CHECKS, examine } from "./examine.ts";
export type { DoctorFacts } from "./facts.ts";
export type { Check, DoctorFinding, Severity } from "./finding.ts";
export type { DoctorOptions } from "./gather_facts.ts";
export { gatherFacts } from "./gather_facts.ts";
