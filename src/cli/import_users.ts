import { CausewayError, describeError } from "../base/mod.ts";
import type { BareJid } from "../xmpp/mod.ts";
import type { Accounts } from "./accounts.ts";
import { reservedNote } from "./accounts.ts";
import type { ListedUser } from "./user_list.ts";

/**
 * Simultaneous key derivations: the platform's pool has four threads, and the event loop keeps it
 * filled.
 */
const BATCH = 16;

/** Accounts that a list is added to. */
export type TakingAccounts = Pick<Accounts, "address" | "add" | "put">;

/** Result of an import. */
export interface ImportResult {
  /** Number of accounts that were added or updated. */
  readonly imported: number;
  /** Number of accounts that failed. */
  readonly failed: number;
  /** Accounts of the list that were not looked at any more. */
  readonly left: number;
}

/** Options of `importUsers`. */
export interface ImportUsersOptions {
  readonly replacesExisting: boolean;
  /** Called with a message for each account that has failed, or that may lack data. */
  told(message: string): void;
}

/**
 * Adds the accounts of a list. One unusable address in the list means that no account is added.
 * Later failures are reported, and the other accounts are still added, unless all of a batch fail in a
 * way that may pass by itself: then nothing can be added now.
 */
export async function importUsers(
  accounts: TakingAccounts,
  list: readonly ListedUser[],
  { replacesExisting, told }: ImportUsersOptions,
): Promise<ImportResult> {
  const checked = checkAddresses(accounts, list);
  let [imported, done, isAway] = [0, 0, false];
  while (done < checked.length && !isAway) {
    const batch = checked.slice(done, done + BATCH);
    const outcomes = await Promise.allSettled(
      batch.map(async ({ jid, user }) => {
        if (replacesExisting) return await accounts.put(jid, user.password);
        await accounts.add(jid, () => user.password);
        return { wasReserved: false };
      }),
    );
    for (const [index, outcome] of outcomes.entries()) {
      const { jid, user: { line } } = batch[index]!;
      if (outcome.status === "rejected") {
        told(`line ${line}: ${describeError(outcome.reason)}`);
        continue;
      }
      imported++;
      if (outcome.value.wasReserved) told(`line ${line}: ${reservedNote(jid)}`);
    }
    done += batch.length;
    isAway = outcomes.every((outcome) =>
      outcome.status === "rejected" && outcome.reason instanceof CausewayError &&
      outcome.reason.retryable
    );
  }
  return { imported, failed: done - imported, left: checked.length - done };
}

interface CheckedUser {
  readonly jid: BareJid;
  readonly user: ListedUser;
}

function checkAddresses(accounts: TakingAccounts, list: readonly ListedUser[]): CheckedUser[] {
  const checked: CheckedUser[] = [];
  const lines = new Map<string, number>();
  const mistakes: string[] = [];
  for (const user of list) {
    try {
      const jid = accounts.address(user.jid);
      const earlier = lines.get(jid.text);
      if (earlier !== undefined) {
        mistakes.push(`line ${user.line}: ${jid.text} stands in line ${earlier} already`);
      }
      lines.set(jid.text, user.line);
      checked.push({ jid, user });
    } catch (thrown) {
      mistakes.push(`line ${user.line}: ${describeError(thrown)}`);
    }
  }
  if (mistakes.length > 0) throw new CausewayError("cli/user-list", mistakes.join("\n"));
  return checked;
}
