// @ts-types="@types/pg"
import pg from "pg";
import type { CausewayConfiguration } from "../../../harness/mod.ts";
import { withCluster } from "../../../harness/mod.ts";
import { BenchChild } from "../bench_child.ts";
import type { BenchOptions, BenchRow } from "../bench_options.ts";
import { spreadOf } from "../bench_format.ts";
import { measureCluster } from "../cluster_measurement.ts";
import type { ClusterFigures } from "../cluster_measurement.ts";
import type { DatabasePlace } from "../people/accounts.ts";
import { processUsage } from "../process_usage.ts";
import type {
  ArchiveCommand,
  ArchiveDatabase,
  ArchiveEvent,
  ArchivePlace,
  ArchivePlan,
} from "./archive_protocol.ts";
import { COUNTS, PAGES, REMOVALS, WAITING_INSERTIONS } from "./archive_protocol.ts";
import type {
  ArchivedMessagesFigures,
  ArchiveFigures,
  ArchivesFigures,
  LargeArchiveFigures,
} from "./archive_report.ts";
import type { ArchiveServer } from "./archive_server.ts";
import { POSTGRESQL_ARGS, startArchiveServer } from "./archive_server.ts";
import { MULTIPLIED, multiplyArchive } from "./multiplied_archive.ts";
import { measureSlowDatabase } from "./slow_database.ts";

type ArchiveChild = BenchChild<ArchiveCommand, ArchiveEvent>;

/** Before the first run, in which servers on Java compile their code, and before each other. */
const [FIRST_WARM_UP_MS, WARM_UP_MS] = [6_000, 1_000];
/** Reads of each page, and counts of each kind. */
const [READS, COUNTED] = [300, 50];
/** Messages from which on an SQL database copies most of a large archive by itself. */
const MANY = 2_000_000;
const SAMPLE_MS = 200;
const PASSWORD = "bench";
const PERMISSIONS = ["--allow-read", "--allow-write", "--allow-sys"];
/** Lets the nodes' user make checkpoints (PostgreSQL 15). */
const MAY_CHECKPOINT = "GRANT pg_checkpoint TO causeway";

/**
 * Measures those of the rows about archives that the options name.
 * @param begin called before each of them
 */
export async function measureArchives(
  options: BenchOptions,
  progress: (text: string) => void,
  begin: (row: BenchRow) => void,
): Promise<ArchivesFigures> {
  const { rows, databases } = options;
  const has = (row: BenchRow) => {
    if (rows.has(row)) begin(row);
    return rows.has(row);
  };
  const archives: ArchiveFigures[] = [];
  if (has("archive")) {
    for (const database of databases) {
      archives.push(await measureArchive(database, options, progress));
    }
  }
  return {
    archives,
    archivedMessages: has("archived-messages")
      ? await measureArchivedMessages(options, progress)
      : undefined,
    slowDatabase: has("slow-database") ? await measureSlowDatabase(options, progress) : undefined,
  };
}

/** Measures insertions, in turn with those of the bare driver, and then pages of a large archive. */
async function measureArchive(
  database: ArchiveDatabase,
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<ArchiveFigures> {
  const { entries, hasSearch } = options;
  await using server = await startArchiveServer(database, { hasSearch });
  const plan: ArchivePlan = { place: server.place };
  await using product = start("./archive/archive_process.ts", plan);
  await product.expect("ready");
  const rates = await measureInsertions(product, plan, options);
  const { insertsPerSecond, driverPerSecond } = rates;
  progress(
    `${database}: ${Math.round(spreadOf(insertsPerSecond).median)} archived messages/s, ` +
      `${Math.round(spreadOf(driverPerSecond).median)} of the bare driver`,
  );
  const large = entries === 0
    ? undefined
    : await measureLarge(server, product, options, (text) => progress(`${database}: ${text}`));
  return { database, hasSearch, ...rates, large };
}

/** Measures pages, counts and removals of one archive with many messages. */
async function measureLarge(
  server: ArchiveServer,
  product: ArchiveChild,
  { entries, hasRemovals }: Pick<BenchOptions, "entries" | "hasRemovals">,
  progress: (text: string) => void,
): Promise<LargeArchiveFigures> {
  const before = await server.storedBytes();
  const startMs = performance.now();
  const isCopied = canMultiply(server.place, entries);
  await product.send({ do: "fill", entries: isCopied ? MULTIPLIED : entries });
  await product.expect("filled");
  if (isCopied) {
    await multiplyArchive(server.place, entries, (messages) => {
      if (messages % 1_000_000 === 0) progress(`${messages} messages in one archive`);
    });
    await product.send({ do: "note", entries });
    await product.expect("noted");
  }
  const elapsedMs = Math.round(performance.now() - startMs);
  const bytesPerMessage = (await server.storedBytes() - before) / entries;
  progress(`${entries} messages in one archive after ${elapsedMs} ms`);
  let mostBytes = 0;
  const sampling = setInterval(async () => {
    mostBytes = Math.max(mostBytes, (await processUsage(product.pid)).residentBytes);
  }, SAMPLE_MS);
  try {
    const pages = [];
    // Unmeasured: servers compile their code and fill their caches.
    await product.send({ do: "read", page: PAGES[0], times: READS });
    await product.expect("read");
    for (const page of PAGES) {
      await product.send({ do: "read", page, times: READS });
      const { p50Ms, p99Ms } = await product.expect("read");
      pages.push({ page, p50Ms, p99Ms });
      progress(`${page} page: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`);
    }
    const counts = [];
    for (const count of COUNTS) {
      await product.send({ do: "count", count, times: COUNTED });
      const { p50Ms, p99Ms } = await product.expect("counted");
      counts.push({ count, p50Ms, p99Ms });
    }
    const removals = [];
    for (const removal of hasRemovals ? REMOVALS : []) {
      await product.send({ do: "remove", removal });
      const { messages, elapsedMs } = await product.expect("removed");
      removals.push({ removal, messages, elapsedMs });
      progress(`${messages} messages removed (${removal}) after ${Math.round(elapsedMs)} ms`);
    }
    return { entries, bytesPerMessage, pages, counts, removals, mostBytes };
  } finally {
    clearInterval(sampling);
  }
}

/** True for a database that copies rows itself. Words are not copied: SQLite keeps an index alone. */
function canMultiply({ database, hasSearch }: ArchivePlace, entries: number): boolean {
  const isSql = ["sqlite", "postgresql", "mariadb", "mysql"].includes(database);
  return isSql && !hasSearch && entries >= MANY && entries % MULTIPLIED === 0;
}

async function measureInsertions(
  product: ArchiveChild,
  plan: ArchivePlan,
  { runs, seconds }: Pick<BenchOptions, "runs" | "seconds">,
): Promise<Pick<ArchiveFigures, "insertsPerSecond" | "driverPerSecond">> {
  await using driver = start("./archive/bare_archive.ts", plan);
  await driver.expect("ready");
  const rates: [number[], number[]] = [[], []];
  for (let run = 1; run <= runs; run++) {
    const warmUpMs = run === 1 ? FIRST_WARM_UP_MS : WARM_UP_MS;
    for (const [i, child] of [product, driver].entries()) {
      await child.send({ do: "insert", warmUpMs, measureMs: seconds * 1_000 });
      const { messages, elapsedMs } = await child.expect("inserted");
      if (messages === 0) throw new Error("Nothing was stored");
      rates[i]!.push(messages / elapsedMs * 1_000);
    }
  }
  return { insertsPerSecond: rates[0], driverPerSecond: rates[1] };
}

function start(script: string, plan: ArchivePlan): ArchiveChild {
  return BenchChild.start(script, plan, { permissions: PERMISSIONS });
}

/** Measures messages between two datacenters that share PostgreSQL, with archives and without. */
async function measureArchivedMessages(
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<ArchivedMessagesFigures> {
  const server: ArchiveServer = await startArchiveServer("postgresql", options);
  let insertsPerSecond: number;
  {
    await using owned = server;
    const plan: ArchivePlan = { place: owned.place };
    await using product = start("./archive/archive_process.ts", plan);
    await product.expect("ready");
    const rates = await measureInsertions(product, plan, { ...options, runs: 1 });
    insertsPerSecond = rates.insertsPerSecond[0]!;
  }
  // As many messages as wait for the writer there: a batch cannot have more than are on their way.
  const inFlight = Math.max(options.inFlight, Math.ceil(WAITING_INSERTIONS / options.pairs));
  const messages = { ...options, inFlight };
  progress(`messages between datacenters without archives, ${inFlight} in flight for each pair`);
  const without = await measureMessages(false, messages, progress);
  progress("messages between datacenters with archives on both sides");
  const archived = await measureMessages(true, messages, progress);
  return { insertsPerSecond, inFlight, without, with: archived };
}

function measureMessages(
  archives: boolean,
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<ClusterFigures> {
  const account = (index: number) => ({ localpart: `bench${index}`, password: PASSWORD });
  const users = Array.from({ length: 2 * options.pairs }, (_, index) => account(index));
  let place: DatabasePlace | undefined;
  return withCluster({
    datacenters: 2,
    users,
    archives,
    links: "direct",
    components: [],
    database: "postgresql",
    databaseArgs: POSTGRESQL_ARGS,
    databaseStatements: [MAY_CHECKPOINT],
    configure: (configuration) => {
      if (!archives) return;
      place = databaseOf(configuration);
      const { modules } = configuration;
      const table = { full_text_search: options.hasSearch };
      modules["mod_mam"] = { ...modules["mod_mam"] as object, ...table };
    },
  }, (cluster) =>
    measureCluster(
      {
        domain: cluster.globalHost,
        nodes: cluster.datacenters.map((datacenter) => ({
          name: datacenter.name,
          pid: datacenter.node.pid,
          c2s: datacenter.clientAddress("none"),
        })),
        account,
        hasDevices: false,
        ...(archives && { beforePaced: () => makeCheckpoint(place!) }), // each node has been configured
      },
      options,
      progress,
    ));
}

function databaseOf(configuration: CausewayConfiguration): DatabasePlace {
  const { rdbms } = configuration["outgoing_pools"] as {
    rdbms: { default: { connection: DatabasePlace } };
  };
  return rdbms.default.connection;
}

/**
 * Makes PostgreSQL write a checkpoint. From then on it writes over the files of its log that the run at
 * full load has filled, as one does that has run for a while. A server that is new fills each file
 * with zeros first, and all its users wait.
 */
async function makeCheckpoint(place: DatabasePlace): Promise<void> {
  const { username: user, ...connection } = place;
  const client = new pg.Client({ ...connection, user });
  await client.connect();
  try {
    await client.query("CHECKPOINT");
  } finally {
    await client.end();
  }
}
