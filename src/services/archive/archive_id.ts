import type { ArchiveId } from "../../storage/mod.ts";

/** Longest text of an id: two numbers below 2^53 in base 36. */
const PATTERN = /^([0-9a-z]{1,11})-([0-9a-z]{1,11})$/;

/** Returns the id of a message as clients see it (XEP-0359). */
export function archiveIdText({ process, sequence }: ArchiveId): string {
  return `${process.toString(36)}-${sequence.toString(36)}`;
}

/** Reads an id that `archiveIdText` has written; undefined for any other text. */
export function tryArchiveId(text: string): ArchiveId | undefined {
  const [, process, sequence] = PATTERN.exec(text) ?? [];
  if (process === undefined || sequence === undefined) return undefined;
  const id = { process: parseInt(process, 36), sequence: parseInt(sequence, 36) };
  const isSafe = Number.isSafeInteger(id.process) && Number.isSafeInteger(id.sequence);
  // One text for one id.
  return isSafe && archiveIdText(id) === text ? id : undefined;
}
