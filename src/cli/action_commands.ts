import { Command } from "commander";
import { setTimeout as pause } from "node:timers/promises";
import type { ActionResult, Drain, Status } from "../admin/mod.ts";
import type { AdminClient } from "../admin_client/mod.ts";
import { CausewayError } from "../base/mod.ts";
import type { AdminCommandOptions } from "./admin_options.ts";
import { addAdminOptions, connectAdmin } from "./admin_options.ts";
import { describe } from "./command_docs.ts";
import type { CommandIo } from "./command_io.ts";
import { drainText } from "./status_command.ts";

interface DrainOptions extends AdminCommandOptions {
  readonly wait: boolean;
}

/** Milliseconds between two looks at the progress of a drain. */
const LOOK_MS = 500;
/** Milliseconds that the process may take to end after its own deadline. */
const GRACE_MS = 10_000;

/** Makes the command `causeway drain`. */
export function drainCommand(io: CommandIo): Command {
  const command = new Command("drain")
    .description("stop a node gracefully: it hands over what it holds, then ends")
    .option("--no-wait", "return when the stop has begun");
  describe(addAdminOptions(command), {
    examples: [
      ["causeway drain", "stop the node on this machine and watch the progress"],
      [
        "causeway drain --no-wait --admin http://10.0.0.2:8088 --token-file ops.token",
        "begin only",
      ],
    ],
    exits: {
      0: "the node has ended; with --no-wait, the stop has begun",
      1: "the node has not ended by its deadline, or the stop could not begin",
    },
    more: [
      "Systemd and other supervisors may start the node again, unless they are told to stop " +
      "it: systemctl stop causeway drains too.",
    ],
  });
  return command.action(async (options: DrainOptions) => {
    const client = connectAdmin(options);
    const { startedAt } = await statusOf(client);
    const begun = await perform(client, "drain");
    if (!options.json) io.out(begun.text);
    const last = options.wait
      ? await untilEnded(client, startedAt, options.json ? undefined : io)
      : undefined;
    if (options.json) io.out(JSON.stringify({ ...begun, ...(last && { last }) }, null, 2));
    else if (options.wait) io.out("the node has ended");
  });
}

/** Makes the command `causeway reload`. */
export function reloadCommand(io: CommandIo): Command {
  const command = new Command("reload")
    .description("have a node read its configuration and certificates again, as SIGHUP does");
  describe(addAdminOptions(command), {
    examples: [
      ["causeway reload", "after the configuration was edited or certificates were renewed"],
      ["causeway check --config causeway.toml && causeway reload", "check the file first"],
    ],
    exits: {
      0: "the file is in force, except for the settings that are said to need a restart",
      1: "something cannot be used, and nothing has changed; or a bug let only a part take " +
        "effect: the message says which",
    },
    more: [
      "Sessions stay. docs/configuration.md says for each setting whether a reload brings it.",
    ],
  });
  return command.action(async (options: AdminCommandOptions) => {
    const done = await perform(connectAdmin(options), "reload");
    if (options.json) io.out(JSON.stringify(done, null, 2));
    else for (const line of reloadLines(done)) io.out(line);
  });
}

/** Returns a reload's outcome for people. */
function reloadLines({ text, reload }: ActionResult): readonly string[] {
  if (reload === undefined) return [text];
  const ofEffect = (effect: "now" | "new" | "restart") =>
    reload.changes.filter((each) => each.effect === effect).map(({ path }) => path);
  const groups = [
    ["in force now:", ofEffect("now")],
    ["for new connections:", [...ofEffect("new"), ...reload.certificates]],
    ["pools that were replaced:", reload.pools],
    ["needs a restart of the node:", ofEffect("restart")],
  ] as const;
  const lines = groups.flatMap(([heading, names]) =>
    names.length === 0 ? [] : [heading, ...names.map((name) => `  ${name}`)]
  );
  return lines.length === 0 ? ["nothing has changed"] : lines;
}

async function perform(client: AdminClient, action: "drain" | "reload"): Promise<ActionResult> {
  // The node answers by its description, which its own tests check.
  return await client.act("POST", `/api/v1/actions/${action}`, {}) as ActionResult;
}

async function statusOf(client: AdminClient): Promise<Status> {
  return await client.get("/api/v1/status") as Status; // as the description says
}

/**
 * Waits until the process that began at `startedAt` answers at the address no more: nobody does, or
 * a new process that a supervisor has started. Returns the last progress.
 * @throws CausewayError `cli/drain` when the node still answers after its deadline
 */
async function untilEnded(
  client: AdminClient,
  startedAt: string,
  io: CommandIo | undefined,
): Promise<Drain | undefined> {
  let last: Drain | undefined;
  let said = "";
  for (;;) {
    try {
      const status = await statusOf(client);
      if (status.startedAt !== startedAt) return last;
      last = status.drain;
    } catch (thrown) {
      if (thrown instanceof CausewayError && thrown.code === "admin-client/unreachable") {
        return last;
      }
      throw thrown;
    }
    const text = drainText(last);
    if (text !== said) io?.out(said = text);
    const deadlineMs = last.deadlineAt === undefined ? undefined : Date.parse(last.deadlineAt);
    if (deadlineMs !== undefined && Date.now() > deadlineMs + GRACE_MS) {
      throw new CausewayError(
        "cli/drain",
        `Cannot see the node end: it still answers after its deadline ${last.deadlineAt}`,
      );
    }
    await pause(LOOK_MS);
  }
}
