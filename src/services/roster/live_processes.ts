/** Live processes by local host, as the session table knows them. */
export type LiveProcesses = ReadonlyMap<string, ReadonlySet<number>>;

/** Looks in a row at which a process must be missing: Redis may have lost its lease for a moment. */
export const MISSES = 2;
/**
 * Looks after which a datacenter that is back is told once more, and a node that is back asks who has gone
 * meanwhile.
 */
export const SECOND_ANNOUNCEMENT = 5;
/** Processes that are gone and may come back; those of nodes that were restarted never do. */
export const MAX_LOST = 64;
