import { CERTIFICATE_CHECKS } from "./certificate_checks.ts";
import { ENDPOINT_CHECKS } from "./endpoint_checks.ts";
import type { DoctorFacts } from "./facts.ts";
import type { Check, DoctorFinding, Severity } from "./finding.ts";
import { MACHINE_CHECKS } from "./machine_checks.ts";
import { MESH_CHECKS } from "./mesh_checks.ts";
import { REDIS_CHECKS } from "./redis_checks.ts";

/** All checks, in the order in which their findings are shown. */
export const CHECKS: readonly Check<DoctorFacts>[] = [
  ...CERTIFICATE_CHECKS,
  ...REDIS_CHECKS,
  ...ENDPOINT_CHECKS,
  ...MESH_CHECKS,
  ...MACHINE_CHECKS,
];

const WEIGHT: Readonly<Record<Severity, number>> = { error: 0, warning: 1, note: 2 };

/** Runs all checks on `facts`. Returns the findings, the heaviest first. */
export function examine(facts: DoctorFacts): readonly DoctorFinding[] {
  const findings = CHECKS.flatMap((check) =>
    Array.from(check.find(facts), (finding): DoctorFinding => ({ check: check.id, ...finding }))
  );
  return findings.toSorted((a, b) => WEIGHT[a.severity] - WEIGHT[b.severity]);
}
