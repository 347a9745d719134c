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
            using file = await create(join(split, pieFileName(jid)));
            await write(file, pieHead() + pieHostHead(host) + xml + PIE_HOST_TAIL + PIE_TAIL);
            await file.sync();
            count++;
          }
        }
        await syncFolder(split);
      } else {
        using file = await create(output!);
        await write(file, pieHead());
        for (const host of config.hosts) {
          let hasAccounts = false;
          for await (const { xml } of accountsOf(host)) {
            // Other servers refuse a host that they do not have, even without accounts.
            await write(file, hasAccounts ? xml : pieHostHead(host) + xml);
            hasAccounts = true;
            count++;
          }
          if (hasAccounts) await write(file, PIE_HOST_TAIL);
        }
        await write(file, PIE_TAIL);
        await file.sync();
        await syncFolder(dirname(output!));
      }
      io.out(`accounts written: ${count}`);
    });
}

/** Creates a file that only its owner may read: it has keys that let people in. */
async function create(path: string): Promise<Deno.FsFile> {
  try {
    return await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  } catch (thrown) {
    throw new CausewayError("cli/unwritable", `Cannot write ${path}: ${describeError(thrown)}`, {
      cause: thrown,
    });
  }
}

async function write(file: Deno.FsFile, text: string): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
}
