import type { ArchiveId } from "../../storage/mod.ts";
import type { ArchiveIds } from "../archive/mod.ts";

/** The process of all messages of rooms: their numbers tell them apart. */
const PROCESS = 1;
const DIGITS = /^(0|[1-9]\d{0,15})$/;

/** Ids of messages in archives of rooms: the numbers that the rooms give them. */
export const ROOM_IDS: ArchiveIds & { idOf(number: number): ArchiveId } = {
  textOf: ({ sequence }) => `${sequence}`,
  tryRead(text) {
    const sequence = DIGITS.test(text) ? Number(text) : NaN;
    return Number.isSafeInteger(sequence) ? { process: PROCESS, sequence } : undefined;
  },
  idOf: (number) => ({ process: PROCESS, sequence: number }),
};
