import type { Counter, Metrics } from "../../observe/mod.ts";

/** Metrics of the archives. */
export class ArchiveMetrics {
  readonly stored: Counter;
  readonly unwanted: Counter;
  readonly failed: Counter;
  readonly refused: Counter;
  readonly late: Counter;
  readonly queries: Counter;
  readonly removed: { readonly old: Counter; readonly gone: Counter };

  constructor(
    metrics: Metrics,
    { pending, waiting }: { pending(): number; waiting(): number },
  ) {
    const counter = (outcome: string) =>
      metrics.counter({
        name: "causeway_archive_messages_total",
        help:
          "Messages for archives, one for each archive, by outcome: stored, now or from before; " +
          "unwanted by the owner's preferences; failed because the store failed until the node " +
          "stopped, or cannot hold the message; or refused because too many wait for the store",
        labels: { outcome },
      });
    this.stored = counter("stored");
    this.unwanted = counter("unwanted");
    this.failed = counter("failed");
    this.refused = counter("refused");
    this.late = metrics.counter({
      name: "causeway_archive_late_total",
      help: "Messages that an archive did not have after a second, because the store was too slow",
    });
    this.queries = metrics.counter({
      name: "causeway_archive_queries_total",
      help: "Pages of archives that clients were sent",
    });
    const removed = (reason: string) =>
      metrics.counter({
        name: "causeway_archive_removed_total",
        help: "Messages that this node has removed from archives, by reason: old, as the host " +
          "keeps messages for some time; gone, as they were stored after the end of their account",
        labels: { reason },
      });
    this.removed = { old: removed("old"), gone: removed("gone") };
    metrics.gauge({
      name: "causeway_archive_messages_pending",
      help: "Messages that this node is writing to archives",
    }, pending);
    metrics.gauge({
      name: "causeway_archive_senders_waiting",
      help: "Sessions and components that are not read, because an archive has no room for their " +
        "next message",
    }, waiting);
  }
}
