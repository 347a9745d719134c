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

/**
 * Runs all checks on `facts`. Returns the findings, the heaviest first. What several listeners share,
 * such as a certificate, is named once.
 */
export function examine(facts: DoctorFacts): readonly DoctorFinding[] {
  const findings = new Map<string, DoctorFinding>();
  for (const { id, find } of CHECKS) {
    for (const found of find(facts)) {
      findings.set(JSON.stringify([id, found]), { check: id, ...found });
    }
  }
  return [...findings.values()].toSorted((a, b) => WEIGHT[a.severity] - WEIGHT[b.severity]);
}
