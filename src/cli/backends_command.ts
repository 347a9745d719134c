import { Argument, Command, Option } from "commander";
import { CausewayError, describeError, SystemClock } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { loadConfig } from "../config/mod.ts";
import type { BackendRow, CopiedKind, CopyReport, DataPlace } from "../storage/mod.ts";
import {
  backendsOf,
  CATALOGUE,
  copiableKinds,
  COPIED_KIND_NAMES,
  copyData,
  DATA_KINDS,
  describeKinds,
  DUMP_VARIANTS,
  inCopyOrder,
  mssqlDump,
  refuseEmptySource,
  SCHEMA_NAMES,
  schemaFiles,
} from "../storage/mod.ts";
import { plainText } from "../terminal/mod.ts";
import type { BareJid } from "../xmpp/mod.ts";
import { parseAccountAddress } from "./accounts.ts";
import type { CommandIo } from "./command_io.ts";
import { dumpText, odbcEntryCommand } from "./odbc_commands.ts";
import { SlowSteps } from "./slow_steps.ts";

interface Options {
  readonly config: string;
  readonly json?: true;
}

interface CopyCommandOptions extends Options {
  readonly from: string;
  readonly to: string;
  readonly kinds?: readonly CopiedKind[];
  readonly replace?: true;
  readonly final?: true;
  readonly byCount?: true;
}

interface PrepareCommandOptions {
  readonly fixIsolation?: true;
  readonly adminCommand?: string;
}

interface DumpOptions {
  readonly variant?: (typeof DUMP_VARIANTS)[number];
  readonly forOdbcClient?: true;
}

/** Units after which a copy tells of its progress again. */
const PROGRESS_STEP = 10_000;

/** One data kind that a configuration keeps in a backend. */
interface Use {
  readonly kind: keyof typeof DATA_KINDS;
  /** Absent for data of the node itself. */
  readonly host?: string;
  readonly pool?: string;
}

/**
 * Makes the command `causeway backends …`, which prepares and checks the databases of a
 * configuration. Calls `done` with the exit code.
 */
export function backendsCommand(io: CommandIo, done: (code: number) => void): Command {
  const backends = new Command("backends").description("prepare and check databases");
  const config = () => new Option("--config <FILE>", "configuration file");
  const json = () => new Option("--json", "print JSON");
  const print = (value: unknown) => io.out(JSON.stringify(value, null, 2));

  backends.command("list").description("print which backend may hold which data, and what is used")
    .addOption(config()).addOption(json())
    .action((options: Partial<Options>) => {
      const uses = options.config === undefined ? undefined : usesOf(loadConfig(options.config));
      const rows = CATALOGUE.map((row) => ({ row, uses: uses?.get(row.id) ?? [] }));
      if (options.json) print({ backends: rows.map(({ row, uses }) => ({ ...row, uses })) });
      else for (const { row, uses } of rows) for (const line of linesOf(row, uses)) io.out(line);
    });

  backends.command("plan").description("print what prepare would do, and change nothing")
    .addOption(config().makeOptionMandatory()).addOption(json())
    .action(async (options: Options) => {
      const plans: unknown[] = [];
      for (const backend of backendsOf(loadConfig(options.config).storage)) {
        const { name } = backend;
        const planned = await attempt(async () => ({ statements: await backend.plan() }));
        const { place } = backend; // the server has said which product it is
        if ("problem" in planned) done(1);
        if (options.json) plans.push({ backend: name, place, ...planned });
        else if ("problem" in planned) sayProblem(name, planned.problem, io);
        else sayStatements(`${name}: ${place}`, planned.statements, io);
      }
      if (options.json) print({ plans });
    });

  backends.command("prepare").description("create or migrate the tables; safe to repeat")
    .option("--fix-isolation", "turn on READ_COMMITTED_SNAPSHOT of SQL Server; may take a while")
    .option("--admin-command <PROGRAM>", "make Riak's bucket types with this: sudo riak-admin")
    .addOption(config().makeOptionMandatory()).addOption(json())
    .action(async (options: Options & PrepareCommandOptions) => {
      const prepared: unknown[] = [];
      for (const backend of backendsOf(loadConfig(options.config).storage)) {
        const { name } = backend;
        const { fixIsolation: fixesIsolation, adminCommand } = options;
        using slow = new SlowSteps(name, { io, clock: new SystemClock() });
        const run = await attempt(async () => ({
          statements: await backend.prepare({
            fixesIsolation,
            adminCommand,
            progress: (step) => slow.begin(step),
          }),
          leftover: await backend.leftover?.() ?? [],
        }));
        const { place } = backend;
        if ("problem" in run || run.leftover.length > 0) done(1);
        if (options.json) prepared.push({ backend: name, place, ...run });
        else if ("problem" in run) sayProblem(name, run.problem, io);
        else sayPrepared(name, run, io);
      }
      if (options.json) print({ prepared });
    });

  backends.command("check").description("check that the databases can be reached and used")
    .option("--user <JID>", "show what directories say of this account")
    .addOption(config().makeOptionMandatory()).addOption(json())
    .action(async (options: Options & { readonly user?: string }) => {
      const reports: unknown[] = [];
      const config = loadConfig(options.config);
      // A mistyped address would have nothing to show, and look like one that is fine.
      const user = options.user === undefined
        ? undefined
        : parseAccountAddress(options.user, config.hosts);
      const note = user && noDirectoryNote(user, config);
      for (const backend of backendsOf(config.storage)) {
        const { name } = backend;
        const report = await backend.check({ user: user?.text });
        const { place } = backend;
        if (report.problems.length > 0) done(1);
        if (options.json) {
          reports.push({ backend: name, place, ...report });
          continue;
        }
        for (const fact of report.facts ?? []) io.out(`${name}: ${fact}`);
        for (const problem of report.problems) sayProblem(name, problem, io);
        if (report.problems.length > 0 || report.server === undefined) continue;
        const { product, version } = report.server;
        const { schemaVersion } = report;
        const schema = schemaVersion === undefined ? "" : `, schema version ${schemaVersion}`;
        io.out(`${name}: ok (${product} ${version}${schema})`);
      }
      if (options.json) print({ reports, note });
      else if (note !== undefined) io.error(`causeway: ${note}`);
    });

  backends.command("schema").description("print the schema files as shipped")
    .addArgument(new Argument("<backend>", "kind of database").choices(SCHEMA_NAMES))
    .addOption(
      new Option(
        "--variant <KIND>",
        "print one dump of SQL Server for import, for this kind of server",
      )
        .choices(DUMP_VARIANTS),
    )
    .option("--for-odbc-client", "print the dump with each batch in one line")
    .addOption(json())
    .action((name: string, options: Partial<Options> & DumpOptions) => {
      const { variant, forOdbcClient = false } = options;
      if (variant !== undefined || forOdbcClient) {
        if (name !== "mssql") {
          const problem = "--variant and --for-odbc-client are for mssql";
          throw new CausewayError("cli/usage", `Cannot print the schema of ${name}: ${problem}`);
        }
        const batches = mssqlDump(variant ?? "server");
        if (options.json) print({ backend: name, batches });
        else io.out(dumpText(batches, forOdbcClient));
        return;
      }
      const files = schemaFiles(name)!; // one of the choices
      if (options.json) print({ backend: name, files });
      else for (const { text } of files) io.out(text.trimEnd());
    });

  backends.addCommand(odbcEntryCommand(io).copyInheritedSettings(backends));

  backends.command("copy").description("copy data to another backend; safe to repeat")
    .requiredOption("--from <BACKEND>", "internal, or a pool such as rdbms.default or elastic.logs")
    .requiredOption("--to <BACKEND>", "likewise")
    .addOption(
      new Option(
        "--kinds <KINDS...>",
        "kinds of data, such as users; default: all that can be copied",
      )
        .choices(COPIED_KIND_NAMES),
    )
    .option("--replace", "replace data that differ there; otherwise they are kept and reported")
    .addOption(
      new Option(
        "--final",
        "last pass, while no node writes: replace what differs, remove what only the destination has",
      ).conflicts("replace"),
    )
    .option(
      "--by-count",
      "do not read archives that have the same number of messages and the same ends at both",
    )
    .addOption(config().makeOptionMandatory()).addOption(json())
    .action(async (options: CopyCommandOptions) => {
      const { storage } = loadConfig(options.config);
      const { from, to, kinds = copiableKinds(from, to), replace, final, byCount } = options;
      const differing = final ? "mirror" : replace ? "replace" : "keep";
      const copied: unknown[] = [];
      const left = copiableKinds(from, to).filter((kind) => !kinds.includes(kind));
      if (final && kinds.includes("users") && left.length > 0) {
        io.error(
          `causeway: accounts that are gone from ${from} are removed from ${to} without their ` +
            `${left.join(", ")} there, which the next owners of their names get; without --kinds ` +
            "these go too",
        );
      }
      if (final) {
        try {
          await refuseEmptySource(storage, { from, to, kinds });
        } catch (thrown) {
          if (!options.json) throw thrown;
          done(1);
          return print({ copied, problem: describeError(thrown) });
        }
      }
      for (const kind of inCopyOrder(kinds, differing)) {
        const steps = new Map<string, number>();
        const reports: CopyReport[] = [];
        const run = await attempt(async () => {
          await copyData(storage, {
            kind,
            from,
            to,
            differing,
            verifies: byCount ? "count" : "checksum",
            progress(table, done, total) {
              const step = Math.floor(done / PROGRESS_STEP);
              if (step === (steps.get(table) ?? 0)) return;
              steps.set(table, step);
              io.error(`causeway: ${table}: ${done}${total === undefined ? "" : ` of ${total}`}`);
            },
            copied(report) {
              reports.push(report);
              if (!options.json) sayCopied(report, { from, to, io });
            },
          });
          return {};
        });
        const isWrong = (report: CopyReport) => report.kept > 0 || (final && !isVerified(report));
        if ("problem" in run || reports.some(isWrong)) done(1);
        const tables = reports.map((report) => ({ ...report, isVerified: isVerified(report) }));
        copied.push({ kind, from, to, tables, ...run });
        if (!("problem" in run)) continue;
        if (!options.json) sayProblem(kind, run.problem, io);
        break; // the kinds behind it may rely on it
      }
      if (options.json) print({ copied });
    });

  return backends;
}

/** Does the work of one backend. A failure there keeps nobody from the backends behind it. */
async function attempt<T extends object>(
  work: () => Promise<T>,
): Promise<T | { readonly problem: string }> {
  try {
    return await work();
  } catch (thrown) {
    return { problem: describeError(thrown) };
  }
}

function sayProblem(name: string, problem: string, io: CommandIo): void {
  // A server may have said a part of it.
  for (const line of problem.split("\n")) io.error(`causeway: ${name}: ${plainText(line)}`);
}

/** True when both sides have the same after a copy. */
function isVerified({ source, destination }: CopyReport): boolean {
  return source.units === destination.units && source.checksum === destination.checksum;
}

function sayCopied(
  report: CopyReport,
  { from, to, io }: { readonly from: string; readonly to: string; readonly io: CommandIo },
): void {
  const { table, added, same, replaced, removed, kept, keptNames, source, destination } = report;
  io.out(
    `${table}: ${added} copied from ${from} to ${to}, ${replaced} replaced, ${removed} removed, ` +
      `${same} there already`,
  );
  if (isVerified(report)) {
    io.out(`${table}: verified, ${source.units} at both, checksum ${source.checksum}`);
  } else if (kept === 0) {
    io.error(
      `causeway: ${table}: ${from} has ${source.units} and ${to} has ${destination.units}, not the ` +
        "same: copy once more with --final when no node writes",
    );
  }
  if (kept === 0) return;
  const names = keptNames.join(", ") + (kept > keptNames.length ? " …" : "");
  io.error(
    `causeway: ${table}: ${kept} not copied, because ${to} has others (see --replace): ${names}`,
  );
}

/** Backend of some data, and the tag of its pool. */
type UsedPlace =
  | { readonly backend: "internal" }
  | Pick<Extract<DataPlace, { readonly pool: string }>, "backend" | "pool">;

/** Lists what a configuration keeps where, by backend. */
function usesOf({ storage, modules }: Config): ReadonlyMap<string, readonly Use[]> {
  const kinds: [Use["kind"], ReadonlyMap<string, UsedPlace>][] = [["users", storage.users]];
  for (const [kind, places] of storage.data ?? []) {
    // Data for which the file names no place is with the accounts.
    const all = [...storage.users, ...places];
    // Most hosts have no offline messages, and may have none.
    const isKept = (host: string) => kind !== "offline" || modules.get(host)?.mod_offline !== false;
    kinds.push([kind, new Map(all.filter(([host]) => isKept(host)))]);
  }
  kinds.push([
    "shared_roster",
    new Map(
      [...storage.sharedRosters ?? []].map((
        [host, { pool }],
      ) => [host, { backend: "ldap", pool } as const]),
    ),
  ]);
  const uses = kinds.flatMap(([kind, places]) =>
    [...places].map(([host, place]): { backend: string; use: Use } => ({
      backend: place.backend,
      use: place.backend === "internal" ? { kind, host } : { kind, host, pool: place.pool },
    }))
  );
  const byBackend = new Map<string, Use[]>([["redis", [{ kind: "sessions" }]]]);
  for (const { backend, use } of uses) {
    byBackend.set(backend, [...byBackend.get(backend) ?? [], use]);
  }
  return byBackend;
}

/** Returns the note about an account of which no directory can say anything. */
function noDirectoryNote({ domainpart, text }: BareJid, config: Config): string | undefined {
  if (usesOf(config).get("ldap")?.some(({ host }) => host === domainpart)) return undefined;
  return `no directory has accounts, vCards or groups of ${domainpart}, so there is nothing to show ` +
    `of ${text}`;
}

function linesOf(row: BackendRow, uses: readonly Use[]): string[] {
  const servers = row.products.map(({ name, minimumVersion }) =>
    minimumVersion === undefined ? name : `${name} ${minimumVersion} or newer`
  );
  return [
    `${row.id}: ${servers.join(", ")}`,
    `  may hold: ${describeKinds(row)}`,
    ...uses.map(({ kind, host, pool }) =>
      `  holds: ${kind}${host === undefined ? "" : ` of ${host}`}` +
      (pool === undefined ? "" : ` in the pool ${pool}`)
    ),
  ];
}

function sayPrepared(
  name: string,
  { statements, leftover }: {
    readonly statements: readonly string[];
    readonly leftover: readonly string[];
  },
  io: CommandIo,
): void {
  if (leftover.length === 0) {
    io.out(`${name}: ready, ${statements.length} statements run`);
    return;
  }
  const problem = "run these commands at a server, or repeat this one with --admin-command:";
  io.error(`causeway: ${name}: ${statements.length} statements run, and not ready: ${problem}`);
  for (const command of leftover) io.out(command);
}

function sayStatements(title: string, statements: readonly string[], io: CommandIo): void {
  io.out(`-- ${title}${statements.length === 0 ? ": nothing to do" : ""}`);
  for (const statement of statements) io.out(`${statement};`);
}
