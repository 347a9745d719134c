import type {
  RequestBounds,
  RequestChange,
  SubscriptionRequest,
  SubscriptionRequestStore,
} from "../subscription_request_store.ts";
import { resolveRequestBounds } from "../subscription_request_store.ts";
import { keyOf } from "./keys.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import { bytesOf, textOf } from "./sql_dialect.ts";

/**
 * Subscription requests in an SQL database. Ids grow, so the request with the lowest id is the
 * oldest. JIDs are found by their SHA-256, because two of them are too long for an index.
 */
export class SqlSubscriptionRequestStore implements SubscriptionRequestStore {
  readonly #database: SqlDatabase;
  readonly #bounds: Required<RequestBounds>;

  constructor(database: SqlDatabase, bounds: RequestBounds = {}) {
    this.#database = database;
    this.#bounds = resolveRequestBounds(bounds);
  }

  async change(changes: readonly RequestChange[]): Promise<number> {
    const action = "change the subscription requests in";
    return await this.#database.transact(action, async (queries) => {
      let displaced = 0;
      for (const change of changes) displaced += await this.#apply(queries, change);
      return displaced + await this.#trimAll(queries);
    });
  }

  async ofContact(contact: string): Promise<readonly SubscriptionRequest[]> {
    return await this.#read(async (queries) => {
      const rows = await queries.selectFrom("subscription_requests")
        .select(["requester", "sender", "stanza", "origin", "process", "sequence"])
        .where("contact_key", "=", keyOf(contact)).orderBy("id").execute();
      return rows.map((row) => ({
        requester: textOf(row.requester),
        contact,
        sender: textOf(row.sender),
        stanza: bytesOf(row.stanza),
        origin: textOf(row.origin),
        process: Number(row.process),
        sequence: Number(row.sequence),
      }));
    });
  }

  async contacts(): Promise<readonly string[]> {
    return await this.#read(async (queries) => {
      const rows = await queries.selectFrom("subscription_requests").select("contact").distinct()
        .orderBy("contact").execute();
      return rows.map(({ contact }) => textOf(contact));
    });
  }

  async count(): Promise<number> {
    return await this.#read(count);
  }

  /** Applies one change, and returns the number of requests that were displaced. */
  async #apply(queries: Queries, change: RequestChange): Promise<number> {
    switch (change.kind) {
      case "keep":
        return await this.#keep(queries, change.request);
      case "remove":
        await queries.deleteFrom("subscription_requests")
          .where("pair_key", "=", pairKeyOf(change.pair)).execute();
        return 0;
      case "remove-same":
        await queries.deleteFrom("subscription_requests")
          .where("pair_key", "=", pairKeyOf(change.request))
          .where("stanza", "=", change.request.stanza).execute();
        return 0;
      case "remove-account": {
        const key = keyOf(change.account);
        await queries.deleteFrom("subscription_requests")
          .where((each) => each.or([each("contact_key", "=", key), each("sender_key", "=", key)]))
          .execute();
        return 0;
      }
      default:
        return change satisfies never;
    }
  }

  async #keep(queries: Queries, request: SubscriptionRequest): Promise<number> {
    const { text } = this.#database.dialect;
    const { requester, contact, sender, stanza, origin, process, sequence } = request;
    const pair = pairKeyOf(request);
    // A replaced request goes to the end, with a new id.
    await queries.deleteFrom("subscription_requests").where("pair_key", "=", pair).execute();
    await queries.insertInto("subscription_requests").values({
      pair_key: pair,
      contact_key: keyOf(contact),
      sender_key: keyOf(sender),
      requester: text(requester),
      contact: text(contact),
      sender: text(sender),
      stanza,
      origin: text(origin),
      process,
      sequence,
    }).execute();
    return await this.#trimSender(queries, sender) + await this.#trimContact(queries, contact);
  }

  /**
   * Keeps as many of this sender's newest requests as it may have, removes the older ones and
   * returns their number.
   */
  async #trimSender(queries: Queries, sender: string): Promise<number> {
    const key = keyOf(sender);
    const query = queries.selectFrom("subscription_requests").select("id")
      .where("sender_key", "=", key).orderBy("id", "desc");
    const newest = await this.#database.dialect.limit(query, this.#bounds.maxPerSender + 1)
      .execute();
    const surplus = newest[this.#bounds.maxPerSender];
    if (surplus === undefined) return 0;
    const { numDeletedRows } = await queries.deleteFrom("subscription_requests")
      .where("sender_key", "=", key).where("id", "<=", surplus.id).executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }

  /**
   * Removes requests above the bound for this contact: each time the oldest of the sender that has
   * most of them, so that a sender that speaks for many takes no room from the others. Returns
   * their number.
   */
  async #trimContact(queries: Queries, contact: string): Promise<number> {
    // Usually at most one is removed. More are removed only after the bound was lowered.
    for (let removed = 0;; removed++) {
      if (!await this.#trimContactOnce(queries, contact)) return removed;
    }
  }

  async #trimContactOnce(queries: Queries, contact: string): Promise<boolean> {
    const senders = await queries.selectFrom("subscription_requests")
      .select((each) => [
        each.fn.countAll<number | string>().as("requests"),
        each.fn.min<number | string>("id").as("oldest"),
      ])
      .where("contact_key", "=", keyOf(contact)).groupBy("sender_key").execute();
    const counted = senders.map(({ requests, oldest }) => ({
      requests: Number(requests),
      oldest: Number(oldest),
    }));
    const total = counted.reduce((sum, { requests }) => sum + requests, 0);
    if (total <= this.#bounds.maxPerContact) return false;
    const [most] = counted.toSorted((one, other) =>
      other.requests - one.requests || one.oldest - other.oldest
    );
    await queries.deleteFrom("subscription_requests").where("id", "=", most!.oldest).execute();
    return true;
  }

  async #trimAll(queries: Queries): Promise<number> {
    const surplus = await count(queries) - this.#bounds.maxRequests;
    if (surplus <= 0) return 0;
    const query = queries.selectFrom("subscription_requests").select("id").orderBy("id");
    const oldest = await this.#database.dialect.limit(query, surplus).execute();
    const { numDeletedRows } = await queries.deleteFrom("subscription_requests")
      .where("id", "<=", oldest.at(-1)!.id).executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }

  #read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#database.run("read subscription requests from", work);
  }
}

async function count(queries: Queries): Promise<number> {
  const { requests } = await queries.selectFrom("subscription_requests")
    .select((each) => each.fn.countAll<number | string>().as("requests"))
    .executeTakeFirstOrThrow();
  return Number(requests);
}

/** No bare JID has a space in it, so two pairs never make one text. */
function pairKeyOf({ requester, contact }: Pick<SubscriptionRequest, "requester" | "contact">) {
  return keyOf(`${requester} ${contact}`);
}
