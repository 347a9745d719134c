/**
 * Names of the records that the memory of repeats has of a session that has come from another node.
 * They are no JIDs.
 */
export interface SessionRecords {
  /** Stanzas that came with the session, or followed it. */
  readonly came: string;
  /** Stanzas to the account that the session has had at its nodes before, or another client has. */
  readonly had: string;
  /** Stanzas to the account that the session may have had there, or only others that keep them still. */
  readonly mayHaveHad: string;
}

/** @param transfer this node's number for the transfer by which the session came */
export function recordsOf(transfer: number): SessionRecords {
  const came = `transfer ${transfer}`;
  return { came, had: `${came} had`, mayHaveHad: `${came} may have had` };
}
