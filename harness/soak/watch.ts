import type { CausewayNode, Datacenter } from "../cluster/mod.ts";
import { runProgram } from "../process/mod.ts";
import { readSample, type Sample } from "./samples.ts";

/** What a node occupies now. Linux only: elsewhere its handles count as none. */
export async function sampleNode(datacenter: Datacenter, node: CausewayNode): Promise<Sample> {
  const response = await fetch(datacenter.adminUrl("/metrics", node));
  const read = readSample(await response.text());
  return { ...read, handles: await openHandles(node.pid) };
}

/** Through `ls`: Deno opens `/proc` of other processes only with every permission there is. */
async function openHandles(pid: number): Promise<number> {
  const listed = await runProgram("ls", [`/proc/${pid}/fd`]);
  return listed?.code === 0 ? listed.output.trim().split("\n").length : 0;
}
