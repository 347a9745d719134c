/**
 * Weight of a finding. `error`: something does not work, or will fail soon. `warning`: it works, and
 * something can go wrong. `note`: worth knowing, or the doctor cannot tell.
 */
export type Severity = "error" | "warning" | "note";

/** One thing that the doctor found. */
export interface DoctorFinding {
  /** Name of the check, such as `redis/evicts`; stable. */
  readonly check: string;
  readonly severity: Severity;
  /** Its subject: a file, an address, a node. */
  readonly about: string;
  /** The facts that were found there, and those that were expected. */
  readonly found: string;
  /** The remedy. */
  readonly advice: string;
}

/** One question of the doctor. */
export interface Check<Facts> {
  readonly id: string;
  /** The question, for the list of checks in `docs/operations.md`. */
  readonly asks: string;
  /** Answers from facts alone: no clock, no file, no connection. */
  find(facts: Facts): Iterable<Omit<DoctorFinding, "check">>;
}
