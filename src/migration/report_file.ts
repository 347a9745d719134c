import { CausewayError } from "../base/mod.ts";
import type { MoveFinding } from "./moved_account.ts";
import { MOVED_KINDS } from "./moved_account.ts";
import { writing } from "./writing.ts";

/** Line of a report, as `lineOf` writes it. */
const LINE = new RegExp(`^[^\\t]+\\t(?:${MOVED_KINDS.join("|")})\\t[^\\t]+$`);
/** Bytes at the beginning of a file that show whether it is a report. */
const LOOKED_AT = 65_536;

/** The report of an import: a line for each finding. */
export class ReportFile implements Disposable {
  readonly #path: string;
  readonly #file: Deno.FsFile;
  #bytes: number;

  private constructor(path: string, file: Deno.FsFile, bytes: number) {
    this.#path = path;
    this.#file = file;
    this.#bytes = bytes;
  }

  /**
   * Opens a report to go on behind the first `bytes` that this import has written to it. One that
   * somebody has removed or emptied begins anew. A lock keeps other imports out until the report is
   * closed: they would overwrite its lines.
   *
   * @param bytes undefined: this import has not written the file. The report of an earlier one is
   * replaced, and nothing else
   * @throws CausewayError `migration/in-use` when another import writes it; `migration/unwritable`
   */
  static async open(path: string, bytes?: number): Promise<ReportFile> {
    const options = { read: true, write: true, create: true, mode: 0o600 };
    const file = await writing(path, () => Deno.open(path, options));
    try {
      if (!await writing(path, () => file.tryLock(true))) throw inUse(path);
      const { size } = await writing(path, () => file.stat());
      if (bytes === undefined && !await writing(path, () => isReport(file))) throw notOurs(path);
      return await writing(path, async () => {
        const kept = Math.min(bytes ?? 0, size);
        await file.truncate(kept);
        await file.seek(kept, Deno.SeekMode.Start);
        return new ReportFile(path, file, kept);
      });
    } catch (thrown) {
      file.close();
      throw thrown;
    }
  }

  /** Length of the report in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds lines, which are on the disk then.
   *
   * @throws CausewayError `migration/unwritable`
   */
  async add(findings: readonly MoveFinding[]): Promise<void> {
    const lines = new TextEncoder().encode(findings.map(lineOf).join(""));
    await writing(this.#path, async () => {
      for (let at = 0; at < lines.length;) at += await this.#file.write(lines.subarray(at));
      await this.#file.sync();
    });
    this.#bytes += lines.length;
  }

  [Symbol.dispose](): void {
    // A process that is being started has a copy of the descriptor for a moment, which keeps the lock.
    this.#file.unlockSync();
    this.#file.close();
  }
}

function inUse(path: string): CausewayError {
  return new CausewayError(
    "migration/in-use",
    `Cannot write ${path}: another import writes it; name another file with --report`,
    { retryable: true },
  );
}

function notOurs(path: string): CausewayError {
  return new CausewayError(
    "migration/unwritable",
    `Cannot write ${path}: it is there, and is no report of an import; name another file with ` +
      "--report",
  );
}

/** True for a file that is empty, or begins as a report does. */
async function isReport(file: Deno.FsFile): Promise<boolean> {
  const bytes = new Uint8Array(LOOKED_AT);
  let filled = 0;
  for (let read: number | null = 0; read !== null && filled < LOOKED_AT; filled += read ?? 0) {
    read = await file.read(bytes.subarray(filled));
  }
  const lines = new TextDecoder().decode(bytes.subarray(0, filled)).split("\n");
  const rest = lines.pop()!; // a line that is cut, or nothing
  return lines.every((line) => LINE.test(line)) && (rest === "" || lines.length > 0);
}

/** Returns a line of a report: address, kind and reason, between tabs. */
function lineOf({ account, kind, reason }: MoveFinding): string {
  // Addresses that are malformed may hold anything.
  const fields = [account === "" ? "-" : account, kind, reason];
  return `${fields.map((field) => field.replaceAll(/\p{Cc}/gu, " ")).join("\t")}\n`;
}
