import { join } from "node:path";
import assert from "node:assert/strict";
import { Terminal } from "../console/mod.ts";
import { PROJECT_DIRECTORY, Run } from "../process/mod.ts";

/** Opens the cluster in a terminal, in a shell that says what is left of the terminal afterwards. */
async function openCluster(
  run: Run,
  { args, programs }: {
    readonly args: readonly string[];
    /** Directory of programs that are found before all others. */
    readonly programs: string;
  },
): Promise<Terminal> {
  const task: { tasks: { cluster: string } } = JSON.parse(
    await Deno.readTextFile(join(PROJECT_DIRECTORY, "deno.json")),
  );
  const command = [
    `cd ${PROJECT_DIRECTORY}`,
    // tmux would hand on these two from the one who calls it.
    `export DISPLAY=:none PATH=${programs}:$PATH`,
    `${task.tasks.cluster.replace(/^deno/, Deno.execPath())} ${args.join(" ")}`,
    `echo "ended with $?"; stty -a | grep -ow -e '-*icanon' -e '-*echo'; read line`,
  ].join("; ");
  const program = "/bin/sh";
  const env = { NO_COLOR: "1" };
  return await Terminal.open(run, { name: "cluster", program, args: ["-c", command], env });
}

Deno.test("each key of the cluster's screen does what it says", async () => {
  await using run = await Run.start();
  // A program in the place of the one that opens a browser.
  const opened = run.path("opened");
  const programs = run.path("programs");
  await Deno.mkdir(programs);
  await Deno.writeTextFile(
    join(programs, "xdg-open"),
    `#!/bin/sh\necho "$1" > ${opened}\n`,
    { mode: 0o700 },
  );
  await using terminal = await openCluster(run, {
    args: ["--datacenters", "2", "--redis", "embedded", "--database", "internal"],
    programs,
  });
  const shows = (pattern: RegExp) => terminal.expect(pattern, `${pattern} to be on the screen`);

  await shows(/^Causeway {2}example\.com {2}nodes ready 2\/2 {2}sessions 2 {2}traffic on *$/m);
  await shows(/^dc1-node1 {2}● ready +1 +[1-9]/m);
  await shows(/^dc1 ↔ dc2 {2}═ up/m);

  await terminal.press("c");
  await shows(/^> 1 {2}cut {3}dc1 ↔ dc2 {2}\(up\) *$/m);
  await terminal.press("1");
  await shows(/The link dc1 ↔ dc2 is cut *$/m);
  await shows(/^dc1 ↔ dc2 {2}╳ cut .* [1-9]\d* +\d+ *$/m); // stanzas are held
  await terminal.press("c1");
  await shows(/The link dc1 ↔ dc2 is mended/);
  await shows(/^dc1 ↔ dc2 {2}═ up/m);

  await terminal.press("m");
  await shows(/^> 1 {2}visitor1 {2}at dc1-node1 *$/m);
  await terminal.press("1");
  await shows(/^> 1 {2}visitor1 to dc2 *$/m);
  await terminal.press("1");
  await shows(/visitor1 has left, and logs in at dc2 *$/m);
  await shows(/^dc2-node1 {2}● ready +2 /m);

  await terminal.press("k");
  await shows(/^> 1 {2}kill {3}dc1-node1 {2}\(ready\) *$/m);
  await terminal.press("1");
  await shows(/dc1-node1 is killed *$/m);
  await shows(/^dc1-node1 {2}○ stopped +0 /m);
  await terminal.press("k1");
  await shows(/dc1-node1 is ready after \d+\.\d s *$/m);
  await shows(/^dc1-node1 {2}● ready/m);

  await terminal.press("t");
  await shows(/traffic off *$/m);
  await terminal.press("l");
  await shows(/^ +0 {2}without a fate yet *$/m);
  await shows(/^Nothing is wrong: no stanza is lost, doubled or out of order\. *$/m);
  await terminal.press("qt");
  await shows(/traffic on *$/m);

  await terminal.press("d");
  await shows(/^> 1 {2}dc1-node1 {2}http:\/\/127\.0\.0\.1:\d+\/ *$/m);
  await terminal.press("1");
  await shows(/http:\/\/127\.0\.0\.1:\d+\/ is open in a browser *$/m);
  const address = await Deno.readTextFile(opened);
  const response = await fetch(address.trim(), { headers: { accept: "text/html" } });
  const page = await response.text();
  assert.match(page, /<title>Causeway/);

  await terminal.press("i");
  await shows(/^ {2}alice@example\.com +secret *$/m);
  assert.doesNotMatch(await terminal.screen(), /visitor1@/);
  await terminal.press("q");
  await shows(/^NODE /m);

  await terminal.press("q");
  await shows(/^Ending … *\n+ended with 0 *\nicanon *\necho *$/m);
  await shows(/^ {2}alice@example\.com +secret *$/m); // the terminal shows again what was there before
});
