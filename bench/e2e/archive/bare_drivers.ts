import { Buffer } from "node:buffer";
import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { auth, Client, types } from "cassandra-driver";
import { createConnection } from "mysql2";
// @ts-types="@types/pg"
import pg from "pg";
import type { ArchivedMessage } from "../../../src/storage/mod.ts";
import { keyOf } from "../../../src/storage/sql/keys.ts";
import type { ArchivePlace } from "./archive_protocol.ts";

/** A driver, connected. */
export interface BareDriver {
  /** Messages of one batch: as many as a node takes. */
  readonly batchMessages: number;
  /** Stores messages that are not there. They are on the disk when it resolves. */
  insert(messages: readonly ArchivedMessage[]): Promise<void>;
}

const COLUMNS = [
  "account_key",
  "position",
  "process",
  "sequence",
  "peer_key",
  "peer_resource",
  "sent_at",
  "visible_at",
  "stanza",
] as const;
const INSERTION = `INSERT INTO archive_messages (${COLUMNS.join(", ")}) VALUES `;
/** Messages of a batch: as many as a node takes. */
const [BATCH, SMALL_BATCH] = [1_000, 256];

/** Connects to a database. */
export async function openBareDriver(place: ArchivePlace): Promise<BareDriver> {
  switch (place.database) {
    case "sqlite":
      return openSqlite(place);
    case "postgresql":
      return await openPostgres(place);
    case "mariadb":
    case "mysql":
      return openMysql(place);
    case "elasticsearch":
    case "opensearch":
      return openElastic(place);
    case "cassandra":
      return await openCassandra(place);
  }
}

const ENCODER = new TextEncoder();

/** Gives messages the positions of archives, which nobody else adds to. */
class Positions {
  readonly #next = new Map<string, number>();

  take(archive: string): number {
    const position = this.#next.get(archive) ?? 0;
    this.#next.set(archive, position + 1);
    return position;
  }
}

/** Returns the values of a row, in the order of the columns. Keys differ from those of the product. */
function rowOf(message: ArchivedMessage, positions: Positions): (Buffer | number)[] {
  const { process, sequence, peer, sentAtMs, stanza } = message;
  const archive = `${message.archive} bare`;
  const resource = Buffer.from(ENCODER.encode(peer.resourcepart));
  const position = positions.take(archive);
  return [
    ...[keyOf(archive), position, process, sequence, keyOf(peer.bare), resource],
    ...[sentAtMs, sentAtMs, Buffer.from(stanza)],
  ];
}

function openSqlite({ file }: ArchivePlace): BareDriver {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  const statement = database.prepare(`${INSERTION} (${COLUMNS.map(() => "?").join(", ")})`);
  const positions = new Positions();
  return {
    batchMessages: SMALL_BATCH,
    insert(messages) {
      database.exec("BEGIN IMMEDIATE");
      for (const message of messages) statement.run(...rowOf(message, positions));
      database.exec("COMMIT");
      return Promise.resolve();
    },
  };
}

async function openPostgres(
  { port, name, username, password }: ArchivePlace,
): Promise<BareDriver> {
  const client = new pg.Client({
    host: "127.0.0.1",
    port,
    database: name,
    user: username,
    password,
  });
  await client.connect();
  const positions = new Positions();
  const places = (row: number) =>
    `(${COLUMNS.map((_, column) => `$${row * COLUMNS.length + column + 1}`).join(", ")})`;
  const text = INSERTION + Array.from({ length: BATCH }, (_, row) => places(row)).join(", ");
  return {
    batchMessages: BATCH,
    async insert(messages) {
      const values = messages.flatMap((message) => rowOf(message, positions));
      await client.query({ name: "insertion", text, values }); // a transaction of its own
    },
  };
}

function openMysql({ port, name, username, password }: ArchivePlace): BareDriver {
  const connection = createConnection({
    host: "127.0.0.1",
    port,
    database: name,
    user: username,
    password,
  });
  const execute = promisify<string, (Buffer | number)[], unknown>(
    (sql, values, done) => void connection.execute(sql, values, done),
  );
  const positions = new Positions();
  const places = `(${COLUMNS.map(() => "?").join(", ")})`;
  const text = INSERTION + Array.from({ length: BATCH }, () => places).join(", ");
  return {
    batchMessages: BATCH,
    async insert(messages) {
      await execute(text, messages.flatMap((message) => rowOf(message, positions)));
    },
  };
}

/** Documents as the product makes them, in one request for each batch. */
function openElastic({ port }: ArchivePlace): BareDriver {
  const positions = new Positions();
  const hash = (text: string) => keyOf(text).toString("base64url");
  const decoder = new TextDecoder();
  return {
    batchMessages: BATCH,
    async insert(messages) {
      const lines = messages.flatMap((message) => {
        const { process, sequence, peer, sentAtMs, text, stanza } = message;
        const owner = `${message.archive} bare`;
        const archive = hash(owner);
        const bucket = keyOf(owner).readUInt32BE(0) % BUCKETS;
        return [
          JSON.stringify({
            create: { _id: `message:${archive}:${process}:${sequence}`, routing: String(bucket) },
          }),
          JSON.stringify({
            bucket,
            archive,
            owner: archive,
            host: hash("example.com"),
            peer: [hash(peer.bare), hash(`${peer.bare}/${peer.resourcepart}`)],
            position: positions.take(String(bucket)),
            sent_at: sentAtMs,
            text,
            process,
            sequence,
            stanza: decoder.decode(stanza),
          }),
        ];
      });
      const response = await fetch(`http://127.0.0.1:${port}/messages/_bulk`, {
        method: "POST",
        headers: { "content-type": "application/x-ndjson" },
        body: `${lines.join("\n")}\n`,
      });
      const answer = await response.json() as { readonly errors: boolean };
      if (answer.errors) throw new Error(`Refused: ${JSON.stringify(answer).slice(0, 1_000)}`);
    },
  };
}

/** Buckets of an index that nobody has changed. */
const BUCKETS = 64;

/** Messages of a bucket of Cassandra, which is one partition. */
const CASSANDRA_BUCKET = 2_048;

/** The end of a log of Cassandra's. */
interface BareLog {
  readonly log: string;
  /** Position of the last message; undefined before the first one. */
  last: number | undefined;
}

/**
 * Rows of the same three tables. The messages of an archive go by one lightweight transaction, as the
 * order that readers see allows nothing less.
 */
async function openCassandra(place: ArchivePlace): Promise<BareDriver> {
  const client = new Client({
    contactPoints: [`127.0.0.1:${place.port}`],
    localDataCenter: "dc1",
    keyspace: place.name,
    authProvider: new auth.PlainTextAuthProvider(place.username, place.password),
  });
  await client.connect();
  const logs = new Map<string, BareLog>();
  return {
    batchMessages: SMALL_BATCH,
    async insert(messages) {
      const groups = Map.groupBy(messages, ({ archive }) => archive);
      await Promise.all([...groups].map(async ([archive, some]) => {
        const log = logs.get(archive) ?? { log: randomUUID(), last: undefined };
        logs.set(archive, log);
        await insertInto(client, log, some);
      }));
    },
  };
}

async function insertInto(
  client: Client,
  own: BareLog,
  messages: readonly ArchivedMessage[],
): Promise<void> {
  const { log, last } = own;
  const first = (last ?? -1) + 1;
  // A partition takes its messages in one transaction.
  const bucket = Math.floor(first / CASSANDRA_BUCKET);
  const rest = messages.slice((bucket + 1) * CASSANDRA_BUCKET - first);
  const rows = messages.slice(0, messages.length - rest.length).map((message, i) => ({
    ...message,
    position: first + i,
    key: keyOf(message.peer.bare),
    full: keyOf(`${message.peer.bare}/${message.peer.resourcepart}`),
    resource: Buffer.from(ENCODER.encode(message.peer.resourcepart)),
  }));
  const ids = rows.map(({ process, sequence, position }) => ({
    query:
      "INSERT INTO archive_ids (log, process, block, sequence, position) VALUES (?, ?, ?, ?, ?)",
    params: [log, process, Math.floor(sequence / 1_024), sequence, position],
  }));
  const peers = rows.flatMap(({ key, full, process, sequence, position, sentAtMs }) =>
    [key, full].map((peer) => ({
      query: "INSERT INTO archive_peers (log, peer, block, position, process, sequence, sent_at) " +
        "VALUES (?, ?, 0, ?, ?, ?, ?)",
      params: [log, peer, position, process, sequence, sentAtMs],
    }))
  );
  const options = { prepare: true, logged: false, consistency: types.consistencies.quorum };
  const partitions = [
    ...Map.groupBy(ids, ({ params }) => String(params[2])).values(),
    ...Map.groupBy(peers, ({ params }) => (params[1] as Buffer).toString("hex")).values(),
  ];
  await Promise.all(partitions.map((statements) => client.batch(statements, options)));
  const end = first + rows.length - 1;
  const isFirst = first % CASSANDRA_BUCKET === 0;
  const result = await client.batch([
    {
      query: "UPDATE archive_messages SET last_position = ?, bytes = 0, first_sent = ?, " +
        "last_sent = ?, is_sealed = false WHERE log = ? AND bucket = ? IF last_position = ?",
      params: [
        ...[end, rows[0]!.sentAtMs, rows.at(-1)!.sentAtMs],
        ...[log, bucket, isFirst ? null : last],
      ],
    },
    ...rows.map(({ position, process, sequence, key, resource, sentAtMs, stanza }) => ({
      query: "INSERT INTO archive_messages " +
        "(log, bucket, position, process, sequence, peer, peer_resource, sent_at, stanza) " +
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      params: [
        ...[log, bucket, position, process, sequence, key, resource, sentAtMs],
        Buffer.from(stanza),
      ],
    })),
  ], { ...options, logged: true });
  if (!result.wasApplied()) throw new Error("A transaction was refused");
  own.last = end;
  if (rest.length > 0) await insertInto(client, own, rest);
}
