import { readColumn, readIndex, readTable } from "./definitions.ts";
import type { DatabaseState, DoubleState } from "./double_state.ts";
import { FIRST_USER } from "./double_state.ts";
import type { LockWait } from "./lock.ts";
import { administer, runProcedure } from "./procedures.ts";
import type { Outcome, SystemTable } from "./tables.ts";
import { SessionTables, SYSTEM_TABLES } from "./tables.ts";
import { syntaxError, TdsError } from "./tds_error.ts";
import { CHANGE, transactionChange } from "./tokens.ts";
import type { Statement } from "./transact_sql.ts";
import { statementsOf, TokenReader, tokensOf } from "./transact_sql.ts";
import { translate } from "./translate.ts";
import type { Parameter } from "./values.ts";

/** The sessions of a server, for the tables about them and for KILL. */
export interface Neighbours {
  readonly sessions: Iterable<Session>;
  readonly serverVersion: string;
  kill(id: number): void;
}

/** Settings that every session makes, and that change nothing here. */
const SETTINGS = new Set([
  ...["ansi_nulls", "ansi_null_dflt_on", "ansi_padding", "ansi_warnings", "arithabort"],
  ...["concat_null_yields_null", "cursor_close_on_commit", "datefirst", "dateformat"],
  ...["implicit_transactions", "language", "numeric_roundabort", "quoted_identifier", "textsize"],
]);

const RIGHTS = new Set(["select", "insert", "update", "delete"]);
const NOTHING: Outcome = {};

interface OpenTransaction {
  readonly descriptor: bigint;
  depth: number;
  /** True once it has the lock of those who write. */
  isWriting: boolean;
  /** Names of the locks of `sp_getapplock`. */
  readonly named: Set<string>;
}

/**
 * One session: its settings, its transaction, and its statements. Sessions read what was committed
 * last. Whoever writes has the database's only lock until the end of the transaction, where a real
 * server locks rows. A test therefore sees every lock that a real server has, and more of them.
 */
export class Session {
  readonly id: number;
  readonly user: string;
  readonly state: DoubleState;
  readonly neighbours: Neighbours;
  database: DatabaseState;
  #tables: SessionTables;
  #transaction: OpenTransaction | undefined;
  #descriptors = 0n;
  #lockTimeoutMs = -1;
  #abortsOnError = false;
  #isWaiting = false;
  /** Tokens about transactions, in front of the next answer's end. */
  #news: Uint8Array[] = [];

  constructor(
    { id, user, state, database, neighbours }: Pick<
      Session,
      "id" | "user" | "state" | "database" | "neighbours"
    >,
  ) {
    this.id = id;
    this.user = user;
    this.state = state;
    this.database = database;
    this.neighbours = neighbours;
    this.#tables = this.#open();
  }

  get descriptor(): bigint {
    return this.#transaction?.descriptor ?? 0n;
  }

  get depth(): number {
    return this.#transaction?.depth ?? 0;
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Returns the tokens about transactions since the last call. */
  takeNews(): readonly Uint8Array[] {
    const news = this.#news;
    this.#news = [];
    return news;
  }

  /**
   * Carries out a batch, statement by statement.
   *
   * @throws TdsError of the first statement that fails; the transaction is as the server leaves it
   */
  async *run(
    batch: string,
    given: readonly Parameter[],
    signal: AbortSignal,
  ): AsyncGenerator<Outcome> {
    const parameters = [...given];
    try {
      for (const statement of statementsOf(batch)) {
        yield await this.#execute(statement, parameters, signal);
      }
    } catch (thrown) {
      if (this.#abortsOnError && this.#transaction !== undefined) this.rollback();
      throw thrown;
    }
  }

  begin(): void {
    if (this.#transaction !== undefined) {
      this.#transaction.depth++;
      return;
    }
    const descriptor = ++this.#descriptors;
    this.#transaction = { descriptor, depth: 1, isWriting: false, named: new Set() };
    this.#news.push(transactionChange(CHANGE.begin, descriptor));
  }

  commit(): void {
    const transaction = this.#transaction;
    if (transaction === undefined) {
      throw new TdsError(3902, "The COMMIT TRANSACTION request has no BEGIN TRANSACTION.");
    }
    if (--transaction.depth > 0) return;
    this.#end(transaction, CHANGE.commit);
  }

  rollback(): void {
    const transaction = this.#transaction;
    if (transaction === undefined) {
      throw new TdsError(3903, "The ROLLBACK TRANSACTION request has no BEGIN TRANSACTION.");
    }
    this.#end(transaction, CHANGE.rollback);
  }

  /** Makes the session as new. */
  reset(): void {
    if (this.#transaction !== undefined) this.rollback();
    this.#lockTimeoutMs = -1;
    this.#abortsOnError = false;
  }

  /** Cancels for the client. Ends its transaction too, if it has set XACT_ABORT. */
  cancelled(): void {
    if (this.#abortsOnError && this.#transaction !== undefined) this.rollback();
  }

  close(): void {
    if (this.#transaction !== undefined) this.rollback();
    this.#tables.close();
  }

  use(database: DatabaseState): void {
    if (this.#transaction !== undefined) throw new TdsError(226, "USE within a transaction.");
    this.#tables.close();
    this.database = database;
    this.#tables = this.#open();
  }

  /** Takes a lock of its own name until the transaction ends. Returns false past the time. */
  async lockNamed(name: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const transaction = this.#transaction;
    if (transaction === undefined) throw new TdsError(3916, "There is no transaction to lock in.");
    try {
      await this.state.lock(this.database, name).take(this, this.#wait(signal, timeoutMs));
    } catch (thrown) {
      if (thrown instanceof TdsError && thrown.number === 1222) return false;
      throw thrown;
    }
    transaction.named.add(name);
    return true;
  }

  /** Waits until no other session uses a database. */
  async alone(database: DatabaseState, signal: AbortSignal): Promise<void> {
    if (this.#transaction !== undefined) {
      throw new TdsError(
        226,
        "ALTER DATABASE statement not allowed within multi-statement transaction.",
      );
    }
    const isUsed = () =>
      [...this.neighbours.sessions].some((each) => each !== this && each.database === database);
    while (isUsed()) {
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async #execute(
    statement: Statement,
    parameters: Parameter[],
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { tokens, text } = statement;
    const reader = new TokenReader(tokens);
    const first = reader.peek()!.text;
    switch (first) {
      case "set":
        return this.#set(text);
      case "begin":
        if (!/^begin tran(saction)?$/i.test(text)) throw syntaxError("begin");
        this.begin();
        return NOTHING;
      case "commit":
        if (!/^commit( tran(saction)?)?$/i.test(text)) throw syntaxError("commit");
        this.commit();
        return NOTHING;
      case "rollback":
        if (!/^rollback( tran(saction)?)?$/i.test(text)) throw syntaxError("rollback");
        this.rollback();
        return NOTHING;
      case "if":
        return await this.#conditional(text, parameters, signal);
      case "declare": {
        const [, name] = /^declare @(\w+) (?:int|bigint)$/i.exec(text) ?? [];
        if (name === undefined) throw syntaxError("declare");
        parameters.push({ name, kind: "integer", value: null });
        return NOTHING;
      }
      case "exec":
        return await runProcedure(this, text, parameters, signal);
      case "create":
      case "alter":
      case "drop":
        return await this.#define(statement, signal) ?? await administer(this, text, signal);
      case "select":
      case "insert":
      case "update":
      case "delete":
        return await this.#query(statement, parameters, signal);
      default:
        return await administer(this, text, signal);
    }
  }

  #set(text: string): Outcome {
    const [, name = "", value = ""] = /^set (\w+) (.*)$/i.exec(text) ?? [];
    switch (name.toLowerCase()) {
      case "lock_timeout":
        this.#lockTimeoutMs = Number(value);
        return NOTHING;
      case "xact_abort":
        this.#abortsOnError = /^on$/i.test(value);
        return NOTHING;
      case "transaction":
        if (!/^isolation level read committed$/i.test(value)) throw syntaxError(value);
        return NOTHING;
      default:
        if (!SETTINGS.has(name.toLowerCase())) throw syntaxError(name);
        return NOTHING;
    }
  }

  async #conditional(
    text: string,
    parameters: Parameter[],
    signal: AbortSignal,
  ): Promise<Outcome> {
    const absent = /^if object_id\(N?'(\w+)', N?'U'\) is (not )?null\s+([^]*)$/i.exec(text);
    const open = /^if @@trancount > 0\s+([^]*)$/i.exec(text);
    if (absent === null && open === null) throw syntaxError("if");
    const [holds, rest] = absent === null
      ? [this.#transaction !== undefined, open![1]!]
      : [(this.#tables.definition(absent[1]!) === undefined) === !absent[2], absent[3]!];
    if (!holds) return NOTHING;
    return await this.#execute({ tokens: tokensOf(rest), text: rest }, parameters, signal);
  }

  /** Changes tables and indexes; undefined for what is something else. */
  async #define({ tokens }: Statement, signal: AbortSignal): Promise<Outcome | undefined> {
    const reader = new TokenReader(tokens);
    const change = ((): (() => void) | undefined => {
      if (reader.take("create", "table")) {
        const table = readTable(reader);
        return () => this.#tables.addTable(table);
      }
      const isUnique = reader.take("create", "unique", "index");
      if (isUnique || reader.take("create", "index")) {
        const index = readIndex(reader, isUnique);
        return () => this.#tables.addIndex(index);
      }
      if (reader.take("alter", "table")) return this.#alteration(reader);
      if (reader.take("drop", "table")) {
        const name = reader.name();
        reader.end();
        return () => this.#tables.dropTable(name);
      }
      if (reader.take("drop", "index")) {
        const name = reader.name();
        reader.expect("on");
        reader.name();
        reader.end();
        return () => this.#tables.dropIndex(name);
      }
      return undefined;
    })();
    if (change === undefined) return undefined;
    if (!this.#isOwner) throw new TdsError(262, "CREATE TABLE permission denied.", 14);
    await this.#writing(signal, change);
    return NOTHING;
  }

  #alteration(reader: TokenReader): () => void {
    const name = reader.name();
    const table = this.#tables.definition(name);
    if (table === undefined) throw new TdsError(4902, `Cannot find the object "${name}".`);
    let columns = table.columns;
    if (reader.take("alter", "column")) {
      const { column } = readColumn(reader);
      const old = columns.find((each) => each.name === column.name);
      if (old === undefined) throw new TdsError(4924, `Column '${column.name}' does not exist.`);
      columns = columns.map((each) => each === old ? { ...old, ...column } : each);
    } else if (reader.take("drop", "column")) {
      const gone = reader.name();
      columns = columns.filter((each) => each.name !== gone);
    } else {
      reader.expect("add");
      do columns = [...columns, readColumn(reader).column]; while (reader.take(","));
    }
    reader.end();
    return () => this.#tables.changeTable({ ...table, columns });
  }

  async #query(
    { tokens }: Statement,
    parameters: readonly Parameter[],
    signal: AbortSignal,
  ): Promise<Outcome> {
    const verb = tokens[0]!.text;
    if (!this.#isOwner && RIGHTS.has(verb) && !tokens.some(({ text }) => text === "sys")) {
      if (!this.database.grants[this.user]?.includes(verb)) {
        throw new TdsError(229, `The ${verb.toUpperCase()} permission was denied.`, 14);
      }
    }
    for (const [index, { text }] of tokens.entries()) {
      if (text === "sys") this.#fill(tokens[index + 2]?.text ?? "");
    }
    const { sql, writes } = translate(tokens, parameters, this.#tables);
    if (!writes) return this.#tables.query(sql, parameters);
    if (verb !== "insert") {
      return await this.#writing(signal, () => {
        const outcome = this.#tables.query(sql, parameters);
        if (verb === "update") this.#failIfFull(outcome);
        return outcome;
      });
    }
    const reader = new TokenReader(tokens);
    reader.expect("insert", "into");
    const table = reader.name();
    this.#checkIdentity(table, tokens.slice(3));
    return await this.#writing(signal, () => {
      const outcome = this.#tables.query(sql, parameters);
      this.#failIfFull(outcome);
      this.#failIfAsked(table);
      return outcome;
    });
  }

  /** A column that counts by itself takes no value, and a list has to leave it out. */
  #checkIdentity(name: string, rest: Statement["tokens"]): void {
    const counting = this.#tables.definition(name)?.columns.find(({ isIdentity }) => isIdentity);
    if (counting === undefined) return;
    if (rest[0]?.text !== "(") {
      throw new TdsError(8101, `The identity column in table '${name}' needs a column list.`);
    }
    const list = rest.slice(1, rest.findIndex(({ text }) => text === ")"));
    if (list.some(({ text }) => text === counting.name)) {
      throw new TdsError(544, `Cannot insert explicit value for identity column in '${name}'.`);
    }
  }

  /** Fails after a statement that has put rows into some table, or changed them. */
  #failIfFull({ count = 0 }: Outcome): void {
    const full = this.state.failures.find(({ database, table }) =>
      database === this.database.name && table === "*"
    );
    if (full === undefined || count === 0) return;
    throw new TdsError(full.number, "No table has room, as a test wants it.", 17);
  }

  #failIfAsked(table: string): void {
    for (const { database, table: own, column, value, number } of this.state.failures) {
      if (database !== this.database.name || own !== table) continue;
      if (column !== undefined) {
        const sql = `SELECT 1 AS found FROM "${table}" WHERE CAST("${column}" AS TEXT) = @p_1`;
        const wanted: Parameter = { name: "1", kind: "text", value: value! };
        if (this.#tables.query(sql, [wanted]).count === 0) continue;
      }
      throw new TdsError(number, `The table '${table}' fails, as a test wants it.`, 17);
    }
  }

  /** Changes the database under its lock, all of a statement or nothing. */
  async #writing<T>(signal: AbortSignal, work: () => T): Promise<T> {
    if (this.database.isReadOnly) {
      throw new TdsError(
        3906,
        `Failed to update database "${this.database.name}" because the ` +
          "database is read-only.",
      );
    }
    const transaction = this.#transaction;
    if (transaction?.isWriting !== true) {
      await this.state.lock(this.database).take(this, this.#wait(signal, this.#lockTimeoutMs));
      this.#tables.run("BEGIN IMMEDIATE");
      if (transaction !== undefined) transaction.isWriting = true;
    }
    this.#tables.run("SAVEPOINT tds_statement");
    try {
      const result = work();
      this.#tables.run("RELEASE tds_statement");
      if (transaction === undefined) this.#tables.run("COMMIT");
      return result;
    } catch (thrown) {
      this.#tables.run("ROLLBACK TO tds_statement; RELEASE tds_statement");
      if (transaction === undefined) this.#tables.run("ROLLBACK");
      throw thrown;
    } finally {
      if (transaction === undefined) this.state.lock(this.database).release(this);
    }
  }

  #end(transaction: OpenTransaction, change: typeof CHANGE.commit | typeof CHANGE.rollback): void {
    this.#transaction = undefined;
    if (transaction.isWriting) {
      this.#tables.run(change === CHANGE.commit ? "COMMIT" : "ROLLBACK");
      this.state.lock(this.database).release(this);
    }
    for (const name of transaction.named) this.state.lock(this.database, name).release(this);
    this.#news.push(transactionChange(change, transaction.descriptor));
  }

  #wait(signal: AbortSignal, timeoutMs: number): LockWait {
    return { signal, timeoutMs, waits: (isWaiting) => this.#isWaiting = isWaiting };
  }

  #fill(name: string): void {
    if (!(name in SYSTEM_TABLES)) throw new TdsError(208, `Invalid object name 'sys.${name}'.`);
    const sessions = [...this.neighbours.sessions];
    const rows: Record<SystemTable, () => readonly (readonly (string | number | null)[])[]> = {
      tables: () => this.#tables.tableNames().map((each) => [each, 1]),
      indexes: () => this.#tables.indexNames().map((each) => [each, 1]),
      databases: () =>
        this.state.databases.map((each) => [
          each.name,
          each.id,
          Number(each.isSnapshotOn),
          Number(each.isReadOnly),
        ]),
      dm_exec_sessions: () => sessions.map((each) => [each.id, each.user, each.database.id]),
      dm_exec_requests: () =>
        sessions.filter(({ isWaiting }) => isWaiting)
          .map((each) => [each.id, each.database.id, "LCK_M_X"]),
    };
    const table = name as SystemTable; // it is one of the keys
    this.#tables.fill(table, rows[table]());
  }

  get #isOwner(): boolean {
    return this.user === FIRST_USER || this.database.owner === this.user;
  }

  #open(): SessionTables {
    const { serverVersion } = this.neighbours;
    const properties: Readonly<Record<string, string>> = {
      productversion: serverVersion,
      engineedition: "3",
    };
    return new SessionTables(this.state.pathOf(this.database), {
      serverProperty: (name) => properties[name.toLowerCase()] ?? null,
      databaseId: (name) =>
        name === undefined ? this.database.id : this.state.database(name)?.id ?? null,
      databaseName: () => this.database.name,
    }, Number.parseInt(serverVersion) >= 13);
  }
}
