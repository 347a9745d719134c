/** Argument of the process that logs crowds in, as JSON. */
export interface StormPlan {
  readonly host: string;
  readonly port: number;
  readonly domain: string;
  readonly password: string;
  /** Clients, with a number each, from 0: their accounts are called `crowd` and that number. */
  readonly clients: number;
  /** Contacts of each client. All of them log in. */
  readonly contacts: number;
  /** Logins under way at once. */
  readonly atOnce: number;
}

/** Commands to the process: log all in as fast as the node lets them, or log all out. */
export type StormCommand = { readonly do: "log-in" } | { readonly do: "log-out" };

/** Events of the process. */
export type StormEvent =
  | { readonly event: "ready" }
  /** All are logged in, `elapsedMs` after the first began. `refused` attempts were made again. */
  | { readonly event: "logged-in"; readonly elapsedMs: number; readonly refused: number }
  /** Each has the presence of all its contacts, `elapsedMs` after the first login began. */
  | { readonly event: "met"; readonly elapsedMs: number }
  | { readonly event: "logged-out"; readonly elapsedMs: number };

/** Returns the localpart of a client. */
export function crowdName(number: number): string {
  return `crowd${number}`;
}
