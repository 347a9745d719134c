import { randomHex } from "../../base/mod.ts";

const ID = /^([0-9a-f]{1,14})-[0-9a-f]{32}$/;

/**
 * Returns a new id to resume a stream by (XEP-0198 §5): the incarnation of the process that has the
 * session, then 128 random bits that nobody can guess. The incarnation leads another node to the
 * process. It is random too, and reveals nothing to a client.
 */
export function newResumeId(process: number): string {
  return `${process.toString(16)}-${randomHex(16)}`;
}

/** Returns the incarnation in an id of ours; undefined for any other text. */
export function processOfResumeId(id: string): number | undefined {
  const hex = ID.exec(id)?.[1];
  const process = hex === undefined ? undefined : parseInt(hex, 16);
  return process === undefined || process === 0 || !Number.isSafeInteger(process)
    ? undefined
    : process;
}
