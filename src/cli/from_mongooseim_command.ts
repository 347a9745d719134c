import { Command } from "commander";
import { translateMongooseim } from "../config/mod.ts";
import { describe, EXIT } from "./command_docs.ts";
import { type CommandIo, readNamedFile } from "./command_io.ts";

/** Makes the command `config from-mongooseim`, which translates a configuration. */
export function fromMongooseimCommand(io: CommandIo, done: (code: number) => void): Command {
  const command = new Command("from-mongooseim")
    .description("print a configuration like that of a MongooseIM")
    .argument("<file>", "its mongooseim.toml")
    .action((file: string) => {
      const { toml, notes, lost } = translateMongooseim(readNamedFile(file), file);
      io.out(toml.trimEnd());
      for (const line of [...notes, ...lost]) io.error(line);
      if (lost.length > 0) done(EXIT.incomplete);
    });
  return describe(command, {
    examples: [
      ["causeway config from-mongooseim mongooseim.toml > causeway.toml", "then check the result"],
    ],
    exits: {
      [EXIT.incomplete]: "printed, and the options named on standard error are missing or changed",
    },
  });
}
