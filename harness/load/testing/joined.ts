import type { Sideline } from "../sideline.ts";

/** Joins a sideline to a client that writes into a list. */
export function joined<T extends Sideline>(
  sideline: T,
  name: string,
): { readonly sideline: T; readonly written: string[] } {
  const written: string[] = [];
  sideline.join?.({ name, write: (stanza) => written.push(stanza) > 0 });
  return { sideline, written };
}
