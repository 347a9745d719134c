import { join } from "node:path";
import { Lock } from "./lock.ts";

/** One database, as the server remembers it. */
export interface DatabaseState {
  readonly id: number;
  readonly name: string;
  owner: string;
  isReadOnly: boolean;
  /** READ_COMMITTED_SNAPSHOT. */
  isSnapshotOn: boolean;
  /** Rights of users who own nothing: `select`, `insert`, `update`, `delete`. */
  readonly grants: Record<string, string[]>;
}

interface Remembered {
  readonly logins: Record<string, string>;
  readonly databases: DatabaseState[];
}

/** An error that every insertion of a row with that value gets. */
export interface Failure {
  readonly database: string;
  /** `*`: insertions into all tables and updates of them fail. */
  readonly table: string;
  readonly column: string | undefined;
  readonly value: string | undefined;
  readonly number: number;
}

/** The first user, who may do everything and has no password. */
export const FIRST_USER = "sa";

/** Logins and databases of a server, kept in files of a directory. */
export class DoubleState {
  readonly #directory: string;
  readonly #remembered: Remembered;
  readonly #locks = new Map<string, Lock>();
  /** Errors that tests want. */
  readonly failures: Failure[] = [];

  constructor(directory: string) {
    this.#directory = directory;
    Deno.mkdirSync(directory, { recursive: true });
    try {
      this.#remembered = JSON.parse(Deno.readTextFileSync(this.#file));
    } catch (thrown) {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
      this.#remembered = { logins: { [FIRST_USER]: "" }, databases: [] };
      this.addDatabase("master");
    }
  }

  get databases(): readonly DatabaseState[] {
    return this.#remembered.databases;
  }

  database(name: string): DatabaseState | undefined {
    return this.databases.find((each) => each.name.toLowerCase() === name.toLowerCase());
  }

  addDatabase(name: string): void {
    this.#remembered.databases.push({
      id: this.databases.length + 1,
      name,
      owner: FIRST_USER,
      isReadOnly: false,
      isSnapshotOn: false,
      grants: {},
    });
    this.save();
  }

  isLogin(username: string, password: string): boolean {
    return this.#remembered.logins[username] === password;
  }

  addLogin(username: string, password: string): void {
    this.#remembered.logins[username] = password;
    this.save();
  }

  /** Returns the path of the file that holds a database's tables. */
  pathOf(database: DatabaseState): string {
    return join(this.#directory, `${database.id}.sqlite`);
  }

  /** Returns the lock of that name in a database. The name "" is for writing. */
  lock(database: DatabaseState, name = ""): Lock {
    const key = `${database.id} ${name}`;
    let lock = this.#locks.get(key);
    if (lock === undefined) this.#locks.set(key, lock = new Lock());
    return lock;
  }

  /** Writes down what changed. */
  save(): void {
    const text = JSON.stringify(this.#remembered);
    Deno.writeTextFileSync(`${this.#file}.new`, text);
    Deno.renameSync(`${this.#file}.new`, this.#file);
  }

  get #file(): string {
    return join(this.#directory, "server.json");
  }
}
