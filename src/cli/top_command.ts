import { Command, Option } from "commander";
import type { AdminEvent, Overview } from "../admin/mod.ts";
import type { AdminClient } from "../admin_client/mod.ts";
import { describeError } from "../base/mod.ts";
import type { AdminCommandOptions } from "./admin_options.ts";
import { addAdminOptions, connectAdmin, seconds } from "./admin_options.ts";
import { describe } from "./command_docs.ts";
import type { CommandIo } from "./command_io.ts";
import type { LiveTerminal } from "../terminal/mod.ts";
import { DEFAULT_COLUMNS, INTERRUPT, openTerminal, runScreen } from "../terminal/mod.ts";
import { readPages } from "./read_pages.ts";
import type { TopView } from "./top_screen.ts";
import { topLines } from "./top_screen.ts";

interface Options extends AdminCommandOptions {
  readonly interval: number;
  readonly once?: true;
}

/** Rows of a screen that is printed once, which scrolls. */
const ONCE_ROWS = 1_000;
/** Events that are read, and kept. */
const MAX_EVENTS = 500;

/** Makes the command `causeway top`. */
export function topCommand(io: CommandIo): Command {
  const command = new Command("top")
    .description("watch what flows where; q quits")
    .addOption(
      new Option("--interval <SECONDS>", "time between two looks").default(2).argParser(seconds),
    )
    .option("--once", "print one look and end, as without a terminal");
  describe(addAdminOptions(command), {
    examples: [
      ["causeway top", "the node on this machine, every two seconds"],
      ["causeway top --once", "one look"],
    ],
  });
  return command.action(async (options: Options) => {
    const client = connectAdmin(options);
    if (options.json) {
      io.out(JSON.stringify(await client.get("/api/v1/overview"), null, 2));
      return;
    }
    const terminal = options.once ? undefined : openTerminal();
    if (terminal === undefined) {
      const view = await look(client);
      const size = { columns: io.columns ?? DEFAULT_COLUMNS, rows: ONCE_ROWS };
      const lines = topLines(view, size).slice(0, -1);
      for (const line of lines.slice(0, lines.findLastIndex((each) => each !== "") + 1)) {
        io.out(line);
      }
      return;
    }
    await using _ = terminal;
    await watch(client, terminal, options.interval * 1000);
  });
}

/** @throws CausewayError as `AdminClient.get` */
async function look(client: AdminClient): Promise<TopView> {
  const [overview, events] = await Promise.all([
    client.get("/api/v1/overview"),
    readPages<AdminEvent>(client, "/api/v1/event-log", { limit: MAX_EVENTS }),
  ]);
  return {
    overview: overview as Overview, // the node answers by its description
    events: events.items.toSorted((one, other) => one.id - other.id),
    problem: undefined,
  };
}

/** Draws a look each `intervalMs` until `q`, Control-C or the end of the terminal. */
export async function watch(
  client: AdminClient,
  terminal: LiveTerminal,
  intervalMs: number,
): Promise<void> {
  let view: TopView = { overview: undefined, events: [], problem: undefined };
  await runScreen(terminal, {
    everyMs: intervalMs,
    async look() {
      try {
        view = await look(client);
      } catch (thrown) {
        view = { ...view, problem: describeError(thrown) };
      }
    },
    lines: (size) => topLines(view, size),
    press: (key) => key === "q" || key === INTERRUPT ? "end" : "stay",
  });
}
