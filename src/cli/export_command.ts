import { dirname, join } from "node:path";
import { Command, Option } from "commander";
import { CausewayError, describeError, syncFolder } from "../base/mod.ts";
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
      const accountsOf = (host: string) => exportedAccounts({ stores, host, reader: options.for });
      if (split !== undefined) {
        await Deno.mkdir(split, { recursive: true, mode: 0o700 });
        for (const host of config.hosts) {
          for await (const { jid, xml } of accountsOf(host)) {
            using file = await NewFile.create(join(split, pieFileName(jid)));
            await file.write(pieHead() + pieHostHead(host) + xml + PIE_HOST_TAIL + PIE_TAIL);
            await file.sync();
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
        await file.sync();
        await syncFolder(dirname(output!));
      }
      io.out(`accounts written: ${count}`);
    });
}

/** A file that only its owner may read: it has keys that let people in. */
class NewFile implements Disposable {
  readonly #path: string;
  readonly #file: Deno.FsFile;

  private constructor(path: string, file: Deno.FsFile) {
    this.#path = path;
    this.#file = file;
  }

  /** @throws CausewayError `cli/unwritable`, also when there is such a file */
  static async create(path: string): Promise<NewFile> {
    const open = () => Deno.open(path, { write: true, createNew: true, mode: 0o600 });
    return new NewFile(path, await writing(path, open));
  }

  /** @throws CausewayError `cli/unwritable` */
  async write(text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    await writing(this.#path, async () => {
      for (let at = 0; at < bytes.length;) at += await this.#file.write(bytes.subarray(at));
    });
  }

  /** @throws CausewayError `cli/unwritable` */
  async sync(): Promise<void> {
    await writing(this.#path, () => this.#file.sync());
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }
}

async function writing<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (thrown) {
    throw new CausewayError("cli/unwritable", `Cannot write ${path}: ${describeError(thrown)}`, {
      cause: thrown,
    });
  }
}
