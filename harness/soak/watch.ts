import type { CausewayNode, Datacenter } from "../cluster/mod.ts";
import { runProgram } from "../process/mod.ts";
import { readHandles, readSample, type Sample } from "./samples.ts";

/** Samples the resources of a node now. Linux only: elsewhere its handles count as none. */
export async function sampleNode(datacenter: Datacenter, node: CausewayNode): Promise<Sample> {
  const response = await fetch(datacenter.adminUrl("/metrics", node));
  const read = readSample(await response.text());
  // Through `ls`: Deno opens `/proc` of other processes only with every permission there is.
  const handles = readHandles(await runProgram("ls", [`/proc/${node.pid}/fd`]));
  return { ...read, handles };
}
