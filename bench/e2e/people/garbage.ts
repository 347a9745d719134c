import { DevTools } from "../../../harness/browser/dev_tools.ts";
import type { CausewayNode } from "../../../harness/mod.ts";
import { causewayCommand } from "../../../harness/mod.ts";

/** The program of a node whose garbage can be collected at any time. */
export function inspectedCommand(configFile: string): ReturnType<typeof causewayCommand> {
  const { program, args: [run, ...args] } = causewayCommand(["serve", "--config", configFile]);
  // A binary has no such flag: its memory is looked at with its garbage.
  if (run !== "run") return { program, args: [run!, ...args] };
  return { program, args: [run, "--inspect=127.0.0.1:0", ...args] };
}

/**
 * Returns the address at which a node that runs by `inspectedCommand` takes orders; undefined for a
 * binary. The node has told it in its first lines, of which few are kept for long.
 */
export function inspectorOf(node: CausewayNode): string | undefined {
  return node.logs.map((line) => /ws:\/\/127\.0\.0\.1:\d+\/\S+/.exec(line)?.[0])
    .find((found) => found !== undefined);
}

/** Collects the garbage of the node at `url`, so that its memory can be compared. */
export async function collectGarbage(url: string | undefined): Promise<void> {
  if (url === undefined) return;
  const tools = await DevTools.connect(url);
  try {
    // The first collection lets finalizers run, whose objects the second one finds.
    for (let round = 0; round < 2; round++) await tools.send("HeapProfiler.collectGarbage");
  } finally {
    await tools.close();
  }
}
