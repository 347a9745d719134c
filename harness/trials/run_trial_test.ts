import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { runTrial } from "./run_trial.ts";
import type { Trial } from "./trial.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

Deno.test("runTrial() ends a trial that hangs, and its cluster", async () => {
  let directory = "";
  const hanging = {
    name: "hanging",
    summary: "nothing happens",
    answers: "none",
    prepare(cluster) {
      directory = cluster.run.directory;
      return new Promise<never>(() => {});
    },
    run: () => Promise.resolve(),
  } as const satisfies Trial;
  const cluster = {
    redis: "embedded",
    users: [],
    command: (configFile: string) => ({
      program: Deno.execPath(),
      args: [
        "run",
        "-A",
        "--config",
        path("../../deno.json"),
        path("../cluster/testing/fake_node.ts"),
        configFile,
      ],
    }),
  } as const;
  await assert.rejects(
    runTrial(hanging, { faultMs: 1, perSecond: 1, side: "none", cluster, limitMs: 1 }),
    /Waited 1 ms for the end of the trial hanging; seen so far: [^]*dc3-node2/,
  );
  await Deno.remove(directory, { recursive: true });
});
