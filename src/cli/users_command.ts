import { Argument, Command, Option } from "commander";
import type { AdminClient } from "../admin_client/mod.ts";
import { CausewayError } from "../base/mod.ts";
import { loadConfig } from "../config/mod.ts";
import { listUsers } from "../storage/mod.ts";
import { plainText } from "../terminal/mod.ts";
import type { BareJid } from "../xmpp/mod.ts";
import { Accounts, reservedNote } from "./accounts.ts";
import type { AdminCommandOptions } from "./admin_options.ts";
import { addAccessOptions, adminClient, ownAddress } from "./admin_options.ts";
import type { CommandIo } from "./command_io.ts";
import { firstLine, readNamedFile } from "./command_io.ts";
import { importUsers } from "./import_users.ts";
import type { UserListFormat } from "./user_list.ts";
import { parseUserList } from "./user_list.ts";

interface ConfigOption {
  readonly config: string;
}

type RemoveOptions = ConfigOption & Omit<AdminCommandOptions, "admin" | "json">;

interface PasswordOption extends ConfigOption {
  readonly passwordFile?: string;
}

interface ImportOptions extends ConfigOption {
  readonly format?: UserListFormat;
  readonly update?: true;
}

/**
 * Makes the command `causeway users …` for the accounts of all hosts, wherever they are kept. Calls
 * `done` with the exit code.
 */
export function usersCommand(io: CommandIo, done: (code: number) => void): Command {
  const users = new Command("users").description("manage accounts");
  const jid = () => new Argument("<JID>", "account, such as alice@example.com");
  const config = () => new Option("--config <FILE>", "configuration file").makeOptionMandatory();
  const passwordFile = () =>
    new Option("--password-file <FILE>", "file with the password (default: standard input)");

  users.command("add").description("add an account")
    .addArgument(jid()).addOption(config()).addOption(passwordFile())
    .action(async (text: string, options: PasswordOption) => {
      await using accounts = await Accounts.open(loadConfig(options.config));
      const address = accounts.address(text);
      await accounts.add(address, () => readPassword(address.text, options, io));
    });

  addAccessOptions(
    users.command("remove").description("delete an account")
      .addArgument(jid()).addOption(config()),
  )
    .action(async (text: string, options: RemoveOptions) => {
      const configuration = loadConfig(options.config);
      // A file that cannot be used is known before anything is removed.
      const client = adminClient(ownAddress(configuration), options, configuration);
      await using accounts = await Accounts.open(configuration);
      const address = accounts.address(text);
      await accounts.remove(address);
      await checkAccount(address, client, io);
    });

  users.command("passwd").description("change the password of an account")
    .addArgument(jid()).addOption(config()).addOption(passwordFile())
    .action(async (text: string, options: PasswordOption) => {
      await using accounts = await Accounts.open(loadConfig(options.config));
      const address = accounts.address(text);
      const { wasReserved } = await accounts.setPassword(
        address,
        () => readPassword(address.text, options, io),
      );
      if (wasReserved) io.error(`causeway: ${reservedNote(address)}`);
    });

  users.command("list").description("print all accounts, one on a line").addOption(config())
    .action(async (options: ConfigOption) => {
      const configuration = loadConfig(options.config);
      await using accounts = await Accounts.open(configuration);
      for (const host of configuration.hosts) {
        for await (const name of listUsers(accounts.users(host))) io.out(`${name}@${host}`);
      }
    });

  users.command("import").description("add the accounts of a list with passwords")
    .argument("[list]", "file, or - for standard input", "-")
    .addOption(config())
    .addOption(
      new Option("--format <FORMAT>", "csv: JID,password; json: an object on each line")
        .choices(["csv", "json"]),
    )
    .option("--update", "also change the passwords of accounts that exist")
    .action(async (list: string, options: ImportOptions) => {
      await using accounts = await Accounts.open(loadConfig(options.config));
      const text = list === "-" ? await io.readInput() : readNamedFile(list);
      const listed = parseUserList(text, options.format);
      const { imported, failed, left } = await importUsers(accounts, listed, {
        replacesExisting: options.update === true,
        told: (message) => io.error(`causeway: ${message}`),
      });
      if (left > 0) io.error(`causeway: accounts behind these, not looked at: ${left}; try again`);
      io.out(`accounts imported: ${imported}`);
      if (failed > 0) done(1);
    });

  return users;
}

/** Makes a node look for sessions of an account that was removed, at all nodes. */
async function checkAccount(
  { text }: BareJid,
  client: AdminClient,
  io: CommandIo,
): Promise<void> {
  try {
    await client.act("POST", "/api/v1/actions/check-account", { jid: text });
  } catch (thrown) {
    if (!(thrown instanceof CausewayError)) throw thrown;
    io.error(
      `causeway: ${text} is deleted, but no node could be told: its sessions end within ` +
        `limits.account_check_interval (${plainText(thrown.message)})`,
    );
  }
}

async function readPassword(
  jid: string,
  options: PasswordOption,
  io: CommandIo,
): Promise<string> {
  return options.passwordFile === undefined
    ? await io.readPassword(`Password for ${jid}`)
    : firstLine(readNamedFile(options.passwordFile));
}
