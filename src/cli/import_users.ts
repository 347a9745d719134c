import { CausewayError, describeError } from "../base/mod.ts";
import type { BareJid } from "../xmpp/mod.ts";
import type { Accounts } from "./accounts.ts";
import type { ListedUser } from "./user_list.ts";

/**
 * Simultaneous key derivations: the platform's pool has four threads, and the event loop keeps it
 * filled.
 */
const BATCH = 16;

/** Result of an import. */
export interface ImportResult {
  /** Number of accounts that were added or updated. */
  readonly imported: number;
  /** One message for each account that failed. */
  readonly failures: readonly string[];
}

/**
 * Adds the accounts of a list. One unusable address in the list means that no account is added.
 * Later failures are reported, and the other accounts are still added.
 */
export async function importUsers(
  accounts: Accounts,
  list: readonly ListedUser[],
  options: { readonly replacesExisting: boolean },
): Promise<ImportResult> {
  const checked = checkAddresses(accounts, list);
  const failures: string[] = [];
  for (let start = 0; start < checked.length; start += BATCH) {
    const batch = checked.slice(start, start + BATCH);
    const outcomes = await Promise.allSettled(
      batch.map(({ jid, user }) =>
        options.replacesExisting
          ? accounts.put(jid, user.password)
          : accounts.add(jid, user.password)
      ),
    );
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === "fulfilled") continue;
      failures.push(`line ${batch[index]!.user.line}: ${describeError(outcome.reason)}`);
    }
  }
  return { imported: checked.length - failures.length, failures };
}

interface CheckedUser {
  readonly jid: BareJid;
  readonly user: ListedUser;
}

function checkAddresses(accounts: Accounts, list: readonly ListedUser[]): CheckedUser[] {
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
