import { Run } from "../process/mod.ts";
import { Terminal } from "./terminal.ts";

Deno.test("Terminal shows what its program writes, and gives it what is typed", async () => {
  await using run = await Run.start();
  const script = "read line; printf '\\033[3;7H<%s> grüße' \"$line\"; read line";
  await using terminal = await Terminal.open(run, {
    name: "echo",
    program: "/bin/sh",
    args: ["-c", script],
    env: {},
  });
  await terminal.type("-l 'ünï' $HOME;");
  await terminal.expect(/^ {6}<-l 'ünï' \$HOME;> grüße$/m, "what was typed to be on the screen");
  await terminal.type("");
  await terminal.expectEnd();
});
