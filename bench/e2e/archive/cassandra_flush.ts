import { auth, Client } from "cassandra-driver";
import type { ArchivePlace } from "./archive_protocol.ts";

/** Milliseconds after which a table writes what it has in memory to the disk. */
const FLUSH_PERIOD_MS = 500;
/** The size has to stay the same for so many looks, a flush period and more apart. */
const [LOOKS, LOOK_MS, WITHIN_MS] = [3, 1_000, 60_000];

/**
 * Returns the bytes of Cassandra's tables once their rows are on the disk. New rows are in memory and
 * in the log of changes alone, which no statement flushes, so the tables are told to do it by time.
 * @param diskBytes returns the bytes that the tables have on the disk now
 */
export async function flushedBytes(
  place: ArchivePlace,
  diskBytes: () => Promise<number>,
): Promise<number> {
  const client = new Client({
    contactPoints: [`127.0.0.1:${place.port}`],
    localDataCenter: "dc1",
    authProvider: new auth.PlainTextAuthProvider(place.username, place.password),
  });
  await client.connect();
  try {
    await flushEvery(client, place.name, FLUSH_PERIOD_MS);
    const bytes = await settledBytes(diskBytes);
    await flushEvery(client, place.name, 0); // as before
    return bytes;
  } finally {
    await client.shutdown();
  }
}

async function flushEvery(client: Client, keyspace: string, periodMs: number): Promise<void> {
  const { rows } = await client.execute(
    "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?",
    [keyspace],
    { prepare: true },
  );
  for (const { table_name: table } of rows) {
    await client.execute(
      `ALTER TABLE ${keyspace}.${table} WITH memtable_flush_period_in_ms = ${periodMs}`,
    );
  }
}

async function settledBytes(diskBytes: () => Promise<number>): Promise<number> {
  const endMs = performance.now() + WITHIN_MS;
  let bytes = await diskBytes();
  for (let same = 0; same < LOOKS && performance.now() < endMs;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const now = await diskBytes();
    same = now === bytes ? same + 1 : 0;
    bytes = now;
  }
  return bytes;
}
