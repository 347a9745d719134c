import { dirname } from "node:path";
import { CausewayError, describeFileError, syncFolder } from "../base/mod.ts";
import type { MoveFinding } from "./moved_account.ts";
import { writing } from "./writing.ts";

/** Counts of an import. */
export interface ImportCounts {
  /** Accounts that were added. */
  readonly added: number;
  /** Accounts that existed already. Their data were taken as far as they had none. */
  readonly there: number;
  /** Accounts of which nothing was taken. */
  readonly refused: number;
  /** Accounts that were added with one key only, by the hash function of that key. */
  readonly onlySha1: number;
  readonly onlySha256: number;
  /** Lines of the report. */
  readonly findings: number;
}

/** An account that is about to get its keys: it is added as soon as it has them. */
export interface AwaitedAccount {
  readonly position: string;
  /** See `AccountCredentials.creation`. */
  readonly creation: string;
  readonly onlyKey?: "SHA-1" | "SHA-256" | undefined;
  readonly findings: readonly MoveFinding[];
}

/** Progress of an import. */
export interface ImportState {
  /** Id of the source; see `AccountSource`. */
  readonly source: string;
  /** Text that names the hosts and databases. @default any: earlier versions did not note it */
  readonly destination?: string | undefined;
  /** See `TakingImport`. @default another one each time */
  readonly importId?: string | undefined;
  /** Position behind which it continues; undefined: at the beginning. */
  readonly position?: string | undefined;
  /** Positions behind that one whose items were taken: an item between them failed. @default none */
  readonly taken?: readonly string[];
  /**
   * Accounts that get their keys once this state is on the disk. Those which have them when the import
   * continues were added by it, and are not counted yet. @default none
   */
  readonly awaited?: readonly AwaitedAccount[];
  readonly counts: ImportCounts;
  /** Absolute path of the report. @default any: earlier versions did not note it */
  readonly report?: string;
  /** Length of the report in bytes. What stands behind it is of accounts that are taken again. */
  readonly reportBytes: number;
}

/** End of a message about a state that cannot be continued. */
const ANEW = "remove it to begin anew, which is safe, or name another file with --state";

/**
 * The state of an import in a file. Each new state replaces the file at once: whenever the process is
 * killed, the file has one state or the other.
 *
 * A lock on a file beside it keeps other imports out. The operating system ends the lock with the
 * process, however that ends.
 */
export class StateFile implements Disposable {
  readonly path: string;
  readonly #lock: Deno.FsFile;

  private constructor(path: string, lock: Deno.FsFile) {
    this.path = path;
    this.#lock = lock;
  }

  /**
   * Takes the lock, which lasts until it is disposed of.
   *
   * @throws CausewayError `migration/in-use` when another import has it; `migration/state`
   */
  static async open(path: string): Promise<StateFile> {
    const lockPath = lockPathOf(path);
    for (;;) {
      const lock = await openLock(path, lockPath);
      if (await isLockOf(lock, lockPath)) return new StateFile(path, lock);
      lock.close(); // an import that has just ended has removed it
    }
  }

  /**
   * Returns the state of an interrupted import of this source; undefined when there is none.
   *
   * @throws CausewayError `migration/state` for another file, or the state of another source or
   * destination
   */
  async read(source: string, destination?: string): Promise<ImportState | undefined> {
    let text: string;
    try {
      text = await Deno.readTextFile(this.path);
    } catch (thrown) {
      if (thrown instanceof Deno.errors.NotFound) return undefined;
      throw failure(this.path, describeFileError(thrown), thrown);
    }
    const state = tryState(text);
    if (state === undefined) throw failure(this.path, "it is not the state of an import");
    if (state.source !== source) {
      throw failure(
        this.path,
        `it belongs to an import of another source, or the source has changed; ${ANEW}`,
      );
    }
    // An import into another database would leave out the accounts that this one has taken.
    if ((state.destination ?? destination) === destination) return state;
    throw failure(
      this.path,
      "it belongs to an import with another configuration, or its hosts or databases have changed; " +
        ANEW,
    );
  }

  /** @throws CausewayError `migration/unwritable` */
  async write(state: ImportState): Promise<void> {
    const next = `${this.path}.new`;
    const bytes = new TextEncoder().encode(JSON.stringify(state));
    await writing(this.path, async () => {
      using file = await Deno.open(next, {
        write: true,
        create: true,
        truncate: true,
        mode: 0o600,
      });
      for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
      await file.sync();
      await Deno.rename(next, this.path);
      await syncFolder(dirname(this.path));
    });
  }

  /** Removes the state: the import has ended. */
  remove(): Promise<void> {
    removeIfThere(this.path); // it may have been over in one go
    return Promise.resolve();
  }

  [Symbol.dispose](): void {
    // While it is locked: nobody else has one of this name.
    removeIfThere(lockPathOf(this.path));
    this.#lock.close();
  }
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
}

function lockPathOf(path: string): string {
  return `${path}.lock`;
}

/** Opens a file, and locks it. */
async function openLock(path: string, lockPath: string): Promise<Deno.FsFile> {
  let lock: Deno.FsFile;
  try {
    lock = await Deno.open(lockPath, { write: true, create: true, mode: 0o600 });
  } catch (thrown) {
    throw failure(path, describeFileError(thrown), thrown);
  }
  if (await lock.tryLock(true)) return lock;
  lock.close();
  throw new CausewayError(
    "migration/in-use",
    `Cannot use ${path}: another import uses it; wait until that has ended`,
    { retryable: true },
  );
}

/** True for a lock on the file that has the name now. */
async function isLockOf(lock: Deno.FsFile, lockPath: string): Promise<boolean> {
  try {
    return (await Deno.stat(lockPath)).ino === (await lock.stat()).ino;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return false;
    throw thrown;
  }
}

function failure(path: string, problem: string, cause?: unknown): CausewayError {
  return new CausewayError("migration/state", `Cannot use ${path}: ${problem}`, { cause });
}

function tryState(text: string): ImportState | undefined {
  try {
    const value = JSON.parse(text);
    const { position = "", importId = "", report = "", taken = [], awaited = [] } = value;
    const { destination = "" } = value;
    const isState = typeof value.source === "string" && typeof position === "string" &&
      typeof destination === "string" &&
      typeof importId === "string" && typeof report === "string" &&
      Array.isArray(taken) && Array.isArray(awaited) && typeof value.reportBytes === "number" &&
      typeof value.counts?.added === "number";
    return isState ? value : undefined;
  } catch {
    return undefined; // not ours: the caller says so
  }
}
