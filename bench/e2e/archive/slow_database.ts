import { Buffer } from "node:buffer";
import { RawClient } from "../../../harness/clients/mod.ts";
import type { Cluster, Datacenter } from "../../../harness/mod.ts";
import { withCluster } from "../../../harness/mod.ts";
import { parsePrometheusText, sumOf } from "../../../harness/screen/mod.ts";
import type { BenchOptions } from "../bench_options.ts";
import { processUsage } from "../process_usage.ts";
import { POSTGRESQL_ARGS } from "./archive_server.ts";
import type { FloodFigures, SlowDatabaseFigures } from "./archive_report.ts";

/** Milliseconds by which each packet between the nodes and the database is late. */
const DELAY_MS = 500;
const SAMPLE_MS = 100;
/** Milliseconds after the last message was written, in which the database is still late. */
const STILL_LATE_MS = 10_000;
/** Milliseconds without any answer after which the flood is over. */
const QUIET_MS = 10_000;
/** Messages of one write. */
const AT_ONCE = 50;
const [ALICE, BOB] = ["alice", "bob"];
/** Messages go to bob's full JID: he sends no presence. */
const RESOURCE = "bench";
const PASSWORD = "secret";
/** End of a message to bob, who gets nothing else. It comes behind its id in the archive. */
const MESSAGE = Buffer.from("</message>");
const ERROR = Buffer.from("</error></message>");

/**
 * Floods the archives of two datacenters with messages that alice writes to bob, and looks at the
 * memory of the nodes: first with a fast database, then with one that is late.
 */
export async function measureSlowDatabase(
  options: Pick<BenchOptions, "seconds">,
  progress: (text: string) => void,
): Promise<SlowDatabaseFigures> {
  const users = [ALICE, BOB].map((localpart) => ({ localpart, password: PASSWORD }));
  return await withCluster({
    datacenters: 2,
    users,
    archives: true,
    links: "direct",
    components: [],
    database: "postgresql",
    databaseArgs: POSTGRESQL_ARGS,
    databaseLinks: true,
  }, async (cluster) => {
    const delay = (byMs: number) => {
      for (const { databaseLink } of cluster.datacenters) databaseLink.delay(byMs / 2);
    };
    const usual = await flood(cluster, options, () => {});
    progress(`fast database: ${usual.sent} sent, ${Math.round(usual.mostBytes / 1e6)} MB at most`);
    delay(DELAY_MS);
    const slow = await flood(cluster, options, () => delay(0));
    progress(`slow database: ${Math.round(slow.mostBytes / 1e6)} MB at most`);
    return { delayMs: DELAY_MS, usual, slow };
  });
}

/** @param relieve makes the database fast, so that all that waits comes to its end */
async function flood(
  { globalHost: domain, datacenters }: Cluster,
  { seconds }: Pick<BenchOptions, "seconds">,
  relieve: () => void,
): Promise<FloodFigures> {
  const [dc1, dc2] = datacenters;
  const droppedBefore = await droppedBy(datacenters);
  const login = (datacenter: typeof dc1, localpart: string) =>
    RawClient.login({
      ...datacenter!.clientAddress("none"),
      domain,
      localpart,
      password: PASSWORD,
      resource: RESOURCE,
    });
  await using alice = await login(dc1, ALICE);
  await using bob = await login(dc2, BOB);
  let [sent, arrived, refused, mostBytes] = [0, 0, 0, 0];
  let lastMs = performance.now();
  const count = (client: RawClient, mark: Buffer, counted: () => void) => {
    let tail = Buffer.alloc(0);
    return client.socket.consume((chunk) => {
      lastMs = performance.now();
      const bytes = Buffer.concat([tail, chunk]);
      let end = 0;
      for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, end)) {
        counted();
        end = at + mark.length;
      }
      tail = Buffer.from(bytes.subarray(Math.max(end, bytes.length - mark.length + 1)));
    });
  };
  const readings = [count(alice, ERROR, () => refused++), count(bob, MESSAGE, () => arrived++)];
  const sampling = setInterval(async () => {
    for (const { node } of [dc1!, dc2!]) {
      mostBytes = Math.max(mostBytes, (await processUsage(node.pid)).residentBytes);
    }
  }, SAMPLE_MS);
  const text = "x".repeat(200);
  for (const endMs = performance.now() + seconds * 1_000; performance.now() < endMs;) {
    const messages = Array.from(
      { length: AT_ONCE },
      () =>
        `<message type='chat' id='m${sent++}' to='${BOB}@${domain}/${RESOURCE}'>` +
        `<body>${text}</body></message>`,
    );
    await alice.send(new TextEncoder().encode(messages.join("")));
  }
  lastMs = performance.now();
  const lateUntilMs = lastMs + STILL_LATE_MS;
  const isOver = () => arrived + refused >= sent || performance.now() > lastMs + QUIET_MS;
  const pause = () => new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
  while (!isOver() && performance.now() < lateUntilMs) await pause();
  const arrivedLate = arrived;
  relieve();
  lastMs = performance.now();
  while (!isOver()) await pause();
  clearInterval(sampling);
  void readings; // they end with their clients
  const dropped = await droppedBy(datacenters) - droppedBefore;
  return { sent, arrivedLate, arrived, refused, dropped, mostBytes };
}

/** Returns the number of stanzas that ended at the nodes without an answer, which they count. */
async function droppedBy(datacenters: readonly Datacenter[]): Promise<number> {
  const all = await Promise.all(datacenters.map(async (datacenter) => {
    const response = await fetch(datacenter.adminUrl("/metrics"));
    return sumOf(parsePrometheusText(await response.text()), "causeway_stanzas_dropped_total");
  }));
  return all.reduce((sum, each) => sum + each, 0);
}
