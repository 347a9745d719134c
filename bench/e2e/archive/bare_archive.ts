/**
 * Adds messages through the driver of a database alone, in a process of its own: what the archives
 * could take at most if all else cost nothing. The rows, the tables and the size of a batch are those
 * of the product. So is the guarantee that what was answered is on the disk.
 */
import { jsonLine, readJsonLines } from "../json_lines.ts";
import { messageOf } from "./archive_messages.ts";
import type { ArchiveCommand, ArchiveEvent, ArchivePlan } from "./archive_protocol.ts";
import { openBareDriver } from "./bare_drivers.ts";

function tell(event: ArchiveEvent): void {
  Deno.stdout.writeSync(jsonLine(event));
}

if (import.meta.main) {
  const plan = JSON.parse(Deno.args[0] ?? "{}") as ArchivePlan; // from our own main process
  const driver = await openBareDriver(plan.place);
  let sequence = 0;
  tell({ event: "ready" });
  for await (const command of readJsonLines<ArchiveCommand>(Deno.stdin.readable)) {
    if (command.do !== "insert") {
      throw new TypeError(`The bare driver has no command ${command.do}`);
    }
    const insert = async (): Promise<number> => {
      const messages = Array.from(
        { length: driver.batchMessages },
        () => messageOf(sequence++, plan.place),
      );
      await driver.insert(messages);
      return messages.length;
    };
    for (const endMs = performance.now() + command.warmUpMs; performance.now() < endMs;) {
      await insert();
    }
    const startMs = performance.now();
    let messages = 0;
    while (performance.now() < startMs + command.measureMs) messages += await insert();
    tell({ event: "inserted", messages, elapsedMs: performance.now() - startMs });
  }
  Deno.exit(0);
}
