/**
 * Returns the name of the record that the memory of repeats has of a session that has come from
 * another node: of the stanzas that it brought and that followed it, and of those that its account has
 * had at its nodes before. The name is no JID.
 * @param transfer this node's number for the transfer by which the session came
 */
export function recordOf(transfer: number): string {
  return `transfer ${transfer}`;
}
