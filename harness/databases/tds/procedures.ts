import type { DatabaseState, DoubleState } from "./double_state.ts";
import { FIRST_USER } from "./double_state.ts";
import type { Outcome } from "./tables.ts";
import { syntaxError, TdsError } from "./tds_error.ts";
import type { Parameter } from "./values.ts";

const NOTHING: Outcome = {};

/** Part of a session that procedures and commands use. */
interface Caller {
  readonly user: string;
  readonly state: DoubleState;
  readonly database: DatabaseState;
  readonly neighbours: { kill(id: number): void };
  lockNamed(name: string, timeoutMs: number, signal: AbortSignal): Promise<boolean>;
  alone(database: DatabaseState, signal: AbortSignal): Promise<void>;
  use(database: DatabaseState): void;
}

/**
 * Carries out `EXEC [@variable =] procedure @name = value, …`. The double's own `tds_fail` makes
 * insertions fail, and updates too for `@table = '*'`.
 */
export async function runProcedure(
  session: Caller,
  text: string,
  parameters: Parameter[],
  signal: AbortSignal,
): Promise<Outcome> {
  const [, variable, procedure, list = ""] =
    /^exec(?:ute)? (?:@(\w+) = )?(\w+)\s*([^]*)$/i.exec(text) ?? [];
  const values = namedValues(list);
  const status = await run(procedure?.toLowerCase());
  const index = parameters.findIndex(({ name }) => name === variable);
  if (variable !== undefined) {
    if (index < 0) throw new TdsError(137, `Must declare the scalar variable "@${variable}".`, 15);
    parameters[index] = { name: variable, kind: "integer", value: BigInt(status) };
  }
  return NOTHING;

  async function run(name: string | undefined): Promise<number> {
    switch (name) {
      case "sp_getapplock": {
        const resource = values.get("resource") ?? "";
        if (values.get("lockmode") !== "Exclusive" || values.get("lockowner") !== "Transaction") {
          throw syntaxError("sp_getapplock");
        }
        const isLocked = await session.lockNamed(
          resource,
          Number(values.get("locktimeout") ?? -1),
          signal,
        );
        return isLocked ? 0 : -1;
      }
      case "tds_fail":
        session.state.failures.push({
          database: session.database.name,
          table: values.get("table") ?? "",
          column: values.get("column"),
          value: values.get("value"),
          number: Number(values.get("number")),
        });
        return 0;
      default:
        throw new TdsError(2812, `Could not find stored procedure '${name}'.`);
    }
  }
}

type Command = (
  session: Caller,
  found: readonly (string | undefined)[],
  signal: AbortSignal,
) => Promise<void> | void;

/** Commands about the server and its databases, each with what it looks like. */
const COMMANDS: readonly (readonly [RegExp, Command])[] = [
  [/^create database (\w+)$/i, (session, [name]) => {
    onlyFirst(session);
    if (session.state.database(name!) !== undefined) {
      throw new TdsError(1801, `Database '${name}' already exists.`);
    }
    session.state.addDatabase(name!);
  }],
  [/^create login (\w+) with password = N?'((?:[^']|'')*)'$/i, (session, [name, password]) => {
    onlyFirst(session);
    session.state.addLogin(name!, password!.replaceAll("''", "'"));
  }],
  [/^alter authorization on database::(\w+) to (\w+)$/i, (session, [name, owner]) => {
    onlyFirst(session);
    databaseOf(session, name!).owner = owner!;
  }],
  [/^grant ([\w, ]+) to (\w+)$/i, (session, [rights, user]) => {
    session.database.grants[user!] = rights!.toLowerCase().split(/\s*,\s*/);
  }],
  [
    /^alter database (\w+) set (read_only|read_write)(?: with rollback immediate)?$/i,
    (session, [name, mode]) => {
      onlyOwner(session, databaseOf(session, name!)).isReadOnly = /read_only/i.test(mode!);
    },
  ],
  [
    /^alter database (\w+) set read_committed_snapshot (on|off)$/i,
    async (session, [name, mode], signal) => {
      const database = onlyOwner(session, databaseOf(session, name!));
      await session.alone(database, signal);
      database.isSnapshotOn = /on/i.test(mode!);
    },
  ],
  [/^kill (\d+)$/i, (session, [id]) => {
    onlyFirst(session);
    session.neighbours.kill(Number(id));
  }],
  [/^use (\w+)$/i, (session, [name]) => session.use(databaseOf(session, name!))],
];

/** Carries out a command about the server. @throws TdsError 102 for any other statement */
export async function administer(
  session: Caller,
  text: string,
  signal: AbortSignal,
): Promise<Outcome> {
  for (const [pattern, command] of COMMANDS) {
    const found = pattern.exec(text);
    if (found === null) continue;
    await command(session, found.slice(1), signal);
    session.state.save();
    return NOTHING;
  }
  throw syntaxError(text.split(/\s/)[0]!);
}

function databaseOf(session: Caller, name: string): DatabaseState {
  const database = /^current$/i.test(name) ? session.database : session.state.database(name);
  if (database === undefined) throw new TdsError(911, `Database '${name}' does not exist.`);
  return database;
}

function onlyFirst({ user }: Caller): void {
  if (user !== FIRST_USER) throw new TdsError(300, "VIEW SERVER STATE permission was denied.", 14);
}

function onlyOwner({ user }: Caller, database: DatabaseState): DatabaseState {
  if (user === FIRST_USER || user === database.owner) return database;
  throw new TdsError(5011, "User does not have permission to alter the database.", 14);
}

/** Returns the values of `@name = value, …` by their names in lower case. */
function namedValues(list: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  const pattern = /@(\w+) = (?:N?'((?:[^']|'')*)'|(-?\d+))\s*(?:,\s*|$)/y;
  for (let at = 0; at < list.length; at = pattern.lastIndex) {
    pattern.lastIndex = at;
    const [, name, text, number] = pattern.exec(list) ?? [];
    if (name === undefined) throw syntaxError(list.slice(at));
    values.set(name.toLowerCase(), text?.replaceAll("''", "'") ?? number!);
  }
  return values;
}
