import type { ArchiveId } from "../../storage/mod.ts";

/** Ids of messages in archives, as clients see them (XEP-0359). */
export interface ArchiveIds {
  textOf(id: ArchiveId): string;
  /** Reads an id; undefined for any other text. */
  tryRead(text: string): ArchiveId | undefined;
}

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

/** Ids in the archives of people. */
export const ARCHIVE_IDS: ArchiveIds = { textOf: archiveIdText, tryRead: tryArchiveId };
