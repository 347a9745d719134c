import type { Datacenter } from "../cluster/mod.ts";
import { Figures } from "./_figures.ts";

/** Bytes by which a node may grow after attacks of some megabytes in all. */
const MAX_GROWTH_BYTES = 64 * 1024 * 1024;

/** Throws when the node occupies far more than at the beginning. */
export async function expectSameMemory(datacenter: Datacenter, beginning: Figures): Promise<void> {
  const name = "process_resident_memory_bytes";
  const grown = (await Figures.read(datacenter)).sum(name) - beginning.sum(name);
  if (grown > MAX_GROWTH_BYTES) {
    throw new Error(`Expected ${datacenter.name} to stay in its memory: it grew by ${grown} bytes`);
  }
}
