import { randomHex } from "../../base/mod.ts";

const ID = /^([0-9a-f]{1,14})-[0-9a-f]{32}$/;

/**
 * A new id to resume a stream by (XEP-0198 §5): 128 random bits, which nobody guesses, behind the
 * incarnation of the process that has the session, by which another node finds it. The incarnation
 * is random too, and tells a client nothing.
 */
export function newResumeId(process: number): string {
  return `${process.toString(16)}-${randomHex(16)}`;
}

/** The process that gave the id; undefined for what is none of ours. */
export function processOfResumeId(id: string): number | undefined {
  const hex = ID.exec(id)?.[1];
  const process = hex === undefined ? undefined : parseInt(hex, 16);
  return process === undefined || process === 0 || !Number.isSafeInteger(process)
    ? undefined
    : process;
}
