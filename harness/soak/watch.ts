import type { CausewayNode, Datacenter } from "../cluster/mod.ts";
import { runProgram } from "../process/mod.ts";
import { parsePrometheusText, sumOf } from "../screen/mod.ts";
import type { Sample } from "./samples.ts";

/** What a node occupies now. Linux only: elsewhere its handles count as none. */
export async function sampleNode(datacenter: Datacenter, node: CausewayNode): Promise<Sample> {
  const response = await fetch(datacenter.adminUrl("/metrics", node));
  const samples = parsePrometheusText(await response.text());
  return {
    rssBytes: sumOf(samples, "process_resident_memory_bytes"),
    handles: await openHandles(node.pid),
    held: sumOf(samples, "mod_global_distrib_lane_items") +
      sumOf(samples, "mod_global_distrib_bounce_queue_size"),
  };
}

/** Through `ls`: Deno opens `/proc` of other processes only with every permission there is. */
async function openHandles(pid: number): Promise<number> {
  const listed = await runProgram("ls", [`/proc/${pid}/fd`]);
  return listed?.code === 0 ? listed.output.trim().split("\n").length : 0;
}
