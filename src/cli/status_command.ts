import { Command } from "commander";
import type { Status } from "../admin/mod.ts";
import type { AdminCommandOptions } from "./admin_options.ts";
import { addAdminOptions, connectAdmin } from "./admin_options.ts";
import { describe } from "./command_docs.ts";
import type { CommandIo } from "./command_io.ts";
import { bytesText, DEFAULT_COLUMNS, durationText, factLines } from "../terminal/mod.ts";

/** Makes the command `causeway status`. Calls `done` with the exit code. */
export function statusCommand(io: CommandIo, done: (code: number) => void): Command {
  const command = new Command("status").description("show the state of a node");
  describe(addAdminOptions(command), {
    examples: [
      ["causeway status", "the node on this machine"],
      ["causeway status --admin http://10.0.0.2:8088 --token-file ops.token", "another node"],
    ],
    exits: { 0: "the node is ready", 1: "it is not ready" },
  });
  return command.action(async (options: AdminCommandOptions) => {
    const client = connectAdmin(options);
    // The node answers by its description, which its own tests check.
    const status = await client.get("/api/v1/status") as Status;
    if (!status.ready) done(1);
    if (options.json) io.out(JSON.stringify(status, null, 2));
    else for (const line of statusLines(status, io.columns ?? DEFAULT_COLUMNS)) io.out(line);
  });
}

export function statusLines(status: Status, columns: number): readonly string[] {
  const { build, counts, memory, drain, parts } = status;
  const commit = build.commit === undefined ? "" : ` (${build.commit})`;
  const partText = parts.map(({ name, state, reason }) => {
    return reason === undefined ? `${name} ${state}` : `${name} ${state} (${reason})`;
  });
  const facts: (readonly [string, string])[] = [
    ["node", `${status.node}, ${status.ready ? "ready" : "not ready"}`],
    ["global host", status.globalHost],
    ["version", `${build.version}${commit}, ${build.runtime}, ${build.os}`],
    ["up", `${durationText(status.uptimeMs)}, since ${status.startedAt}`],
    ["parts", partText.join(", ")],
    ["datacenters", `${counts.linkedDatacenters} of ${counts.datacenters} others linked`],
    ["sessions", String(counts.sessions)],
    ["components", String(counts.components)],
    ["bouncing", `${counts.bouncing} stanzas`],
    ["lookups", `${counts.waitingForLookup} stanzas wait for one`],
    ["slowed down", `${counts.heldBack} senders`],
    ["cache", `${counts.cached} addresses`],
    [
      "memory",
      `${bytesText(memory.residentBytes)} resident; waiting stanzas ` +
      `${bytesText(memory.waitingBytes)} of ${bytesText(memory.waitingMaxBytes)}`,
    ],
  ];
  if (drain.isDraining) facts.push(["drain", drainText(drain)]);
  return factLines(facts, columns);
}

/** Text for the progress of a graceful stop. */
export function drainText({ step, sessions, stanzas, deadlineAt }: Status["drain"]): string {
  const until = deadlineAt === undefined ? "" : `, ends by ${deadlineAt}`;
  return `${step ?? "begins"}: ${sessions} sessions and ${stanzas} stanzas left${until}`;
}
