import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { Command, Option } from "commander";
import { CausewayError, describeFileError, syncFolder } from "../base/mod.ts";
import { loadConfig } from "../config/mod.ts";
import {
  exportedAccounts,
  PIE_HOST_TAIL,
  PIE_TAIL,
  pieFileName,
  pieHead,
  pieHostHead,
} from "../migration/mod.ts";
import { Stores } from "../storage/mod.ts";
import type { CommandIo } from "./command_io.ts";

interface Options {
  readonly config: string;
  readonly output?: string;
  readonly split?: string;
  readonly for?: "ejabberd";
}

/** Makes the command `causeway export`, which writes all accounts for other servers. */
export function exportCommand(io: CommandIo): Command {
  return new Command("export")
    .description("write all accounts with their data as files of XEP-0227")
    .addOption(new Option("--config <FILE>", "configuration file").makeOptionMandatory())
    .option("--output <FILE>", "write one file; it must not exist")
    .option("--split <FOLDER>", "write a file for each account, as Prosody reads them")
    .addOption(
      new Option("--for <SERVER>", "write keys as that server reads them").choices(["ejabberd"]),
    )
    .action(async (options: Options) => {
      const { output, split } = options;
      if ((output === undefined) === (split === undefined)) {
        throw new CausewayError("cli/export", "Cannot export: name either --output or --split");
      }
      const config = loadConfig(options.config);
      await using stores = await Stores.open(config.storage);
      let count = 0;
      let hashed = 0;
      const accountsOf = (host: string) => exportedAccounts({ stores, host, reader: options.for });
      if (split !== undefined) {
        await writing(split, () => Deno.mkdir(split, { recursive: true, mode: 0o700 }));
        for (const host of config.hosts) {
          for await (const { jid, xml } of accountsOf(host)) {
            const name = pieFileName(jid);
            if (name !== `${jid.text}.xml`) hashed++;
            using file = await NewFile.create(join(split, name));
            await file.write(pieHead() + pieHostHead(host) + xml + PIE_HOST_TAIL + PIE_TAIL);
            await file.publish();
            count++;
          }
        }
        await syncFolder(split);
      } else {
        using file = await NewFile.create(output!);
        await file.write(pieHead());
        for (const host of config.hosts) {
          let hasAccounts = false;
          for await (const { xml } of accountsOf(host)) {
            // Other servers refuse a host that they do not have, even without accounts.
            await file.write(hasAccounts ? xml : pieHostHead(host) + xml);
            hasAccounts = true;
            count++;
          }
          if (hasAccounts) await file.write(PIE_HOST_TAIL);
        }
        await file.write(PIE_TAIL);
        await file.publish();
        await syncFolder(dirname(output!));
      }
      io.out(`accounts written: ${count}`);
      if (hashed > 0) {
        io.out(
          `accounts in files with another name, which Prosody does not find: ${hashed}; see ` +
            '"Move out" in docs/operations.md',
        );
      }
    });
}

/**
 * A file that only its owner may read: it has keys that let people in. It has a name of its own until
 * it is whole. So nobody takes a part of the accounts for all of them.
 */
class NewFile implements Disposable {
  readonly #path: string;
  readonly #partial: string;
  readonly #file: Deno.FsFile;
  #isPublished = false;

  private constructor(path: string, partial: string, file: Deno.FsFile) {
    this.#path = path;
    this.#partial = partial;
    this.#file = file;
  }

  /** @throws CausewayError `cli/unwritable`, also when there is such a file */
  static async create(path: string): Promise<NewFile> {
    // Two exports to one path must not write into each other's file.
    const partial = `${path}.${randomBytes(4).toString("hex")}.partial`;
    const file = await writing(path, async () => {
      await expectNone(path);
      return await Deno.open(partial, { write: true, createNew: true, mode: 0o600 });
    });
    return new NewFile(path, partial, file);
  }

  /** @throws CausewayError `cli/unwritable` */
  async write(text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    await writing(this.#path, async () => {
      for (let at = 0; at < bytes.length;) at += await this.#file.write(bytes.subarray(at));
    });
  }

  /**
   * Gives the file its name. It is on the disk then, and its name is once the folder is.
   *
   * @throws CausewayError `cli/unwritable`, also when there is such a file by now
   */
  async publish(): Promise<void> {
    await writing(this.#path, async () => {
      await this.#file.sync();
      await expectNone(this.#path);
      await Deno.rename(this.#partial, this.#path);
    });
    this.#isPublished = true;
  }

  /** Closes the file, and removes one that was not published. */
  [Symbol.dispose](): void {
    this.#file.close();
    if (!this.#isPublished) Deno.removeSync(this.#partial);
  }
}

/** @throws Deno.errors.AlreadyExists when a path has anything, even a broken link */
async function expectNone(path: string): Promise<void> {
  try {
    await Deno.lstat(path);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return;
    throw thrown;
  }
  throw new Deno.errors.AlreadyExists("the file exists");
}

async function writing<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (thrown) {
    throw new CausewayError(
      "cli/unwritable",
      `Cannot write ${path}: ${describeFileError(thrown)}`,
      {
        cause: thrown,
      },
    );
  }
}
