import type { MoveFinding } from "./moved_account.ts";
import { writing } from "./writing.ts";

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
   * Opens a report to go on behind its first `bytes`. One that somebody has removed, or another one,
   * begins anew.
   *
   * @throws CausewayError `migration/unwritable`
   */
  static async open(path: string, bytes: number): Promise<ReportFile> {
    return await writing(path, async () => {
      const file = await Deno.open(path, { write: true, create: true, mode: 0o600 });
      try {
        const kept = Math.min(bytes, (await file.stat()).size);
        await file.truncate(kept);
        await file.seek(kept, Deno.SeekMode.Start);
        return new ReportFile(path, file, kept);
      } catch (thrown) {
        file.close();
        throw thrown;
      }
    });
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
    this.#file.close();
  }
}

/** Returns a line of a report: address, kind and reason, between tabs. */
function lineOf({ account, kind, reason }: MoveFinding): string {
  // Addresses that are malformed may hold anything.
  const fields = [account === "" ? "-" : account, kind, reason];
  return `${fields.map((field) => field.replaceAll(/\p{Cc}/gu, " ")).join("\t")}\n`;
}
