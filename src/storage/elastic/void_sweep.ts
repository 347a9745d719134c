import type { Clock } from "../../base/mod.ts";
import type { ArchiveHead, VoidRange } from "./archive_head.ts";
import type { ArchiveHeads } from "./archive_heads.ts";
import type { MessageDocument } from "./elastic_documents.ts";
import type { IndexClient } from "./elastic_index.ts";

/** Void ranges of a head after which old ones are cleaned up. */
const MANY_VOIDS = 32;
/** Age in milliseconds at which a void range is old. */
export const OLD_VOID_MS = 600_000;
/** Documents and void ranges of one search. Servers count a range as up to three of 1024 clauses. */
const [AT_ONCE, RANGES_AT_ONCE] = [1_000, 128];

const ACTION = "clean up an archive in";

/** Objects behind the cleaning. */
interface SweepDeps {
  readonly index: IndexClient;
  readonly heads: ArchiveHeads;
  readonly clock: Clock;
}

/**
 * Removes the garbage in old void ranges of heads that have many, and then forgets these ranges. By
 * then nobody writes into them any more. A failure is harmless: the ranges are there at the next time.
 */
export async function sweepVoids(
  heads: ReadonlyMap<number, ArchiveHead>,
  deps: SweepDeps,
): Promise<void> {
  const oldestMs = deps.clock.wallMs() - OLD_VOID_MS;
  for (const [bucket, { voids }] of heads) {
    const old = voids.length < MANY_VOIDS ? [] : voids.filter(({ atMs }) => atMs < oldestMs);
    if (old.length === 0) continue;
    try {
      for (let i = 0; i < old.length; i += RANGES_AT_ONCE) {
        await removeGarbage(bucket, old.slice(i, i + RANGES_AT_ONCE), deps);
      }
      // One that has grown meanwhile may hold garbage again.
      const isForgotten = ({ from, to }: VoidRange) =>
        old.some((each) => each.from === from && each.to === to);
      await deps.heads.change(bucket, (head) => ({
        ...head,
        voids: head.voids.filter((each) => !isForgotten(each)),
      }));
    } catch {
      return; // the next batch tries again
    }
  }
}

async function removeGarbage(
  bucket: number,
  ranges: readonly VoidRange[],
  { index }: SweepDeps,
): Promise<void> {
  const routing = String(bucket);
  for (;;) {
    await index.refresh(ACTION);
    const { hits } = await index.search<Pick<MessageDocument, "position">>(ACTION, {
      size: AT_ONCE,
      _source: ["position"],
      query: {
        bool: {
          filter: [{ term: { bucket } }],
          should: ranges.map(({ from, to }) => ({ range: { position: { gte: from, lte: to } } })),
          minimum_should_match: 1,
        },
      },
    }, { routing });
    if (hits.length === 0) return;
    // One that its writer has moved in between is no garbage any more.
    const found = await index.get<Pick<MessageDocument, "position">>(
      ACTION,
      hits.map(({ _id: id }) => ({ id, routing })),
      ["position"],
    );
    await index.change(
      ACTION,
      hits.flatMap(({ _id: id }, i) => {
        const { content, stamp } = found[i]!;
        const isGarbage = ranges.some(({ from, to }) =>
          content !== undefined && content.position >= from && content.position <= to
        );
        return isGarbage ? [{ kind: "delete" as const, id, routing, stamp }] : [];
      }),
    );
  }
}
