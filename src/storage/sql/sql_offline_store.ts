import { Buffer } from "node:buffer";
import { sql as raw } from "kysely";
import type { RawBuilder } from "kysely";
import type {
  HeldClaim,
  KeptMessage,
  OfflineBounds,
  OfflineClaim,
  OfflineMessage,
  OfflineStore,
  WaitingMessage,
} from "../offline_store.ts";
import type { Key } from "./keys.ts";
import { accountKey, keyOf } from "./keys.ts";
import { OfflineRoom } from "./offline_room.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import { bytesOf } from "./sql_dialect.ts";

/** Claim of a message that nobody has claimed. */
const NOBODY = new Uint8Array(16);
/** Most keys in one statement: SQL Server takes 2100 parameters. */
const MAX_KEYS = 500;
/** Expired messages that one step removes, about. */
const EXPIRED_AT_ONCE = 500;

/** The messages that wait for the accounts of one domain, in an SQL database. */
export class SqlOfflineStore implements OfflineStore {
  readonly #database: SqlDatabase;
  readonly #domainpart: string;

  constructor(database: SqlDatabase, domainpart: string) {
    this.#database = database;
    this.#domainpart = domainpart;
  }

  async keep(
    localpart: string,
    messages: readonly OfflineMessage[],
    bounds: OfflineBounds,
  ): Promise<readonly boolean[]> {
    const account = this.#keyOf(localpart);
    return await this.#database.transact("keep messages in", async (queries) => {
      const room = await roomOf(queries, account, bounds);
      const kept = messages.map((message) => room.take(message));
      // Two transactions that keep messages for one account choose the same sequence. The later one
      // finds that as a conflict, and is tried again: so the bounds hold, whoever keeps.
      let sequence = room.last;
      for (const [index, { stanza, sender, sentAtMs, expiresAtMs }] of messages.entries()) {
        if (!kept[index]) continue;
        await queries.insertInto("offline_messages").values({
          account_key: account,
          sequence: ++sequence,
          sender_key: keyOf(sender),
          stanza,
          stanza_bytes: stanza.length,
          sent_at: Math.trunc(sentAtMs),
          expires_at: Math.trunc(expiresAtMs),
          claimed_by: NOBODY,
          claimed_until: 0,
        }).execute();
      }
      return kept;
    });
  }

  async claim(localpart: string, { id, nowMs, forMs }: OfflineClaim): Promise<number> {
    return await this.#database.transact("claim messages in", async (queries) => {
      // The condition holds at the moment of the change: of two claims, one gets the message.
      const { numUpdatedRows } = await queries.updateTable("offline_messages")
        .set({ claimed_by: id, claimed_until: this.#clockPlus(forMs) })
        .where("account_key", "=", this.#keyOf(localpart))
        .where("claimed_until", "<=", this.#clockPlus(0))
        .where("expires_at", ">", Math.trunc(nowMs))
        .executeTakeFirstOrThrow();
      return Number(numUpdatedRows);
    });
  }

  async claimed(
    localpart: string,
    claimId: Uint8Array,
    { after, limit }: { readonly after: number; readonly limit: number },
  ): Promise<readonly WaitingMessage[]> {
    return await this.#database.run("read messages from", async (queries) => {
      const query = queries.selectFrom("offline_messages")
        .select(["sequence", "stanza", "sent_at"])
        .where("account_key", "=", this.#keyOf(localpart)).where("sequence", ">", after)
        .where("claimed_by", "=", claimId).orderBy("sequence");
      return (await this.#database.dialect.limit(query, limit).execute()).map(waitingOf);
    });
  }

  async renew(claims: readonly HeldClaim[], forMs: number): Promise<void> {
    await this.#database.run("renew claims in", async (queries) => {
      for (const some of portions(claims)) {
        // No two claims have one id: an id finds rows of its own account alone.
        await queries.updateTable("offline_messages")
          .set({ claimed_until: this.#clockPlus(forMs) })
          .where("account_key", "in", some.map(({ localpart }) => this.#keyOf(localpart)))
          .where("claimed_by", "in", some.map(({ id }) => id)).execute();
      }
    });
  }

  async release(
    localpart: string,
    claimId: Uint8Array,
    sequences: readonly number[],
  ): Promise<void> {
    await this.#database.run("release messages in", async (queries) => {
      for (const some of portions(sequences)) {
        await queries.updateTable("offline_messages")
          .set({ claimed_by: NOBODY, claimed_until: 0 })
          .where("account_key", "=", this.#keyOf(localpart)).where("claimed_by", "=", claimId)
          .where("sequence", "in", some).execute();
      }
    });
  }

  async remove(
    localpart: string,
    claimId: Uint8Array,
    sequences: readonly number[],
  ): Promise<void> {
    await this.#database.run("remove messages from", async (queries) => {
      for (const some of portions(sequences)) {
        await queries.deleteFrom("offline_messages")
          .where("account_key", "=", this.#keyOf(localpart)).where("claimed_by", "=", claimId)
          .where("sequence", "in", some).execute();
      }
    });
  }

  async waiting(localparts: readonly string[], nowMs: number): Promise<readonly string[]> {
    const names = new Map(
      localparts.map((name) => [this.#keyOf(name).toString("hex"), name]),
    );
    return await this.#database.run("look for messages in", async (queries) => {
      const found: string[] = [];
      for (const some of portions([...names.values()])) {
        const rows = await queries.selectFrom("offline_messages").select("account_key").distinct()
          .where("account_key", "in", some.map((name) => this.#keyOf(name)))
          .where("claimed_until", "<=", this.#clockPlus(0))
          .where("expires_at", ">", Math.trunc(nowMs)).execute();
        for (const { account_key: key } of rows) {
          found.push(names.get(Buffer.from(key).toString("hex"))!);
        }
      }
      return found;
    });
  }

  async all(localpart: string): Promise<readonly KeptMessage[]> {
    return await this.#database.run("read messages from", async (queries) => {
      const rows = await queries.selectFrom("offline_messages")
        .select(["sequence", "stanza", "sent_at", "expires_at"])
        .where("account_key", "=", this.#keyOf(localpart)).orderBy("sequence").execute();
      return rows.map((row) => ({ ...waitingOf(row), expiresAtMs: Number(row.expires_at) }));
    });
  }

  async removeAll(localpart: string): Promise<void> {
    await this.#database.run("remove messages from", async (queries) => {
      await queries.deleteFrom("offline_messages")
        .where("account_key", "=", this.#keyOf(localpart)).execute();
    });
  }

  async removeExpired(nowMs: number): Promise<number> {
    return await this.#database.transact("remove messages from", async (queries) => {
      const oldest = queries.selectFrom("offline_messages").select("expires_at")
        .where("expires_at", "<=", Math.trunc(nowMs)).orderBy("expires_at");
      const rows = await this.#database.dialect.limit(oldest, EXPIRED_AT_ONCE).execute();
      const last = rows.at(-1);
      if (last === undefined) return 0;
      const { numDeletedRows } = await queries.deleteFrom("offline_messages")
        .where("expires_at", "<=", last.expires_at).executeTakeFirstOrThrow();
      return Number(numDeletedRows);
    });
  }

  /** The database's clock in milliseconds, and some more of them. */
  #clockPlus(ms: number): RawBuilder<number> {
    return raw<number>`${this.#database.dialect.clockMs} + ${raw.lit(Math.trunc(ms))}`;
  }

  #keyOf(localpart: string): Key {
    return accountKey(localpart, this.#domainpart);
  }
}

async function roomOf(queries: Queries, account: Key, bounds: OfflineBounds): Promise<OfflineRoom> {
  const rows = await queries.selectFrom("offline_messages")
    .select((each) => [
      "sender_key",
      each.fn.countAll<number | string>().as("messages"),
      each.fn.sum<number | string>("stanza_bytes").as("bytes"),
      each.fn.max<number | string>("sequence").as("last"),
    ])
    .where("account_key", "=", account).groupBy("sender_key").execute();
  let last = 0;
  const shares = new Map(rows.map((row) => {
    last = Math.max(last, Number(row.last));
    const share = { messages: Number(row.messages), bytes: Number(row.bytes) };
    return [Buffer.from(row.sender_key).toString("hex"), share];
  }));
  return new OfflineRoom(last, shares, bounds);
}

function waitingOf(
  row: {
    readonly sequence: number | string;
    readonly stanza: Uint8Array;
    readonly sent_at: number | string;
  },
): WaitingMessage {
  const { sequence, stanza, sent_at: sentAt } = row;
  return { sequence: Number(sequence), stanza: bytesOf(stanza), sentAtMs: Number(sentAt) };
}

/** Cuts a list into parts that one statement takes. */
function* portions<T>(list: readonly T[]): Generator<T[]> {
  for (let from = 0; from < list.length; from += MAX_KEYS) yield list.slice(from, from + MAX_KEYS);
}
