import { Command } from "commander";
import type { Where } from "../admin/mod.ts";
import type { AdminCommandOptions } from "./admin_options.ts";
import { addAdminOptions, connectAdmin } from "./admin_options.ts";
import { describe } from "./command_docs.ts";
import type { CommandIo } from "./command_io.ts";
import { DEFAULT_COLUMNS, durationText, tableLines, wrapText } from "../terminal/mod.ts";

/** Makes the command `causeway where`. Calls `done` with the exit code. */
export function whereCommand(io: CommandIo, done: (code: number) => void): Command {
  const command = new Command("where")
    .description("show where somebody is, as the node, its cache and Redis say")
    .argument("<JID>", "a bare or full JID, or the domain of a component");
  describe(addAdminOptions(command), {
    examples: [
      ["causeway where alice@example.com", "all devices of a person"],
      ["causeway where echo.example.com --json", "a component, for a program"],
    ],
    exits: { 0: "the address has a place", 1: "nobody is there, or it cannot be told" },
  });
  return command.action(async (jid: string, options: AdminCommandOptions) => {
    const client = connectAdmin(options);
    // The node answers by its description, which its own tests check.
    const found = await client.get(`/api/v1/where/${encodeURIComponent(jid)}`) as Where;
    const { place } = found.verdict;
    if (place === "nowhere" || place === "unknown") done(1);
    if (options.json) io.out(JSON.stringify(found, null, 2));
    else for (const line of whereLines(found, io.columns ?? DEFAULT_COLUMNS)) io.out(line);
  });
}

export function whereLines(found: Where, columns: number): readonly string[] {
  const { verdict, local, cache, redis } = found;
  const lines = [...wrapText(verdict.text, columns)];
  const section = (title: string, body: readonly string[]) => lines.push("", title, ...body);

  if (local.sessions.length > 0) {
    const rows = local.sessions.map(({ jid, state, isAvailable, priority }) => [
      jid,
      state,
      isAvailable ? `available, priority ${priority ?? 0}` : "not available",
    ]);
    const titles = [{ title: "SESSION", isFlexible: true }, { title: "STATE" }, {
      title: "PRESENCE",
    }];
    section("At this node", tableLines(titles, rows, columns));
  } else section("At this node", [local.isComponentHere ? "the component" : "nobody"]);
  if (local.bouncingStanzas > 0) lines.push(`${local.bouncingStanzas} stanzas wait for it here`);

  const ages = cache.map(({ address, datacenter, ageMs, expiresInMs }) => [
    address,
    datacenter ?? "nowhere",
    durationText(ageMs),
    expiresInMs < 0 ? "only while Redis is away" : `in ${durationText(expiresInMs)}`,
  ]);
  section(
    "In the cache of this node",
    ages.length === 0 ? ["nothing"] : tableLines(
      [{ title: "ADDRESS", isFlexible: true }, { title: "DATACENTER", isFlexible: true }, {
        title: "AGE",
        isRight: true,
      }, { title: "EXPIRES" }],
      ages,
      columns,
    ),
  );

  if (!redis.isReachable) {
    section("In Redis", wrapText(`cannot be asked: ${redis.reason ?? "it is away"}`, columns));
    return lines;
  }
  const keys = redis.keys.map(({ key, datacenter, expiresInMs }) => [
    key,
    datacenter ?? "nothing",
    expiresInMs === undefined ? "" : `in ${durationText(expiresInMs)}`,
  ]);
  section(
    "In Redis",
    keys.length === 0 ? ["nothing"] : tableLines(
      [{ title: "KEY", isFlexible: true }, { title: "DATACENTER", isFlexible: true }, {
        title: "EXPIRES",
      }],
      keys,
      columns,
    ),
  );
  if (redis.claims.length > 0) {
    const rows = redis.claims.map(({ resource, node, priority, ageMs, isLive }) => [
      resource,
      node,
      priority === undefined ? "" : String(priority),
      durationText(ageMs),
      isLive ? "live" : "its node is gone",
    ]);
    lines.push(
      "",
      ...tableLines(
        [
          { title: "RESOURCE", isFlexible: true },
          { title: "NODE", isFlexible: true },
          { title: "PRIORITY", isRight: true },
          { title: "AGE", isRight: true },
          { title: "CLAIM" },
        ],
        rows,
        columns,
      ),
    );
  }
  return lines;
}
