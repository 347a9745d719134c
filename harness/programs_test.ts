import assert from "node:assert/strict";
import { delimiter, join } from "node:path";
import { findPrograms } from "./programs.ts";

Deno.test("findPrograms() gives the first hit of each program on the path, and skips the rest", async () => {
  const root = await Deno.makeTempDir();
  try {
    const [one, two] = [join(root, "one"), join(root, "two")];
    for (const folder of [one, two, join(one, "docker")]) await Deno.mkdir(folder);
    await Deno.writeTextFile(join(two, "docker"), ""); // in `one` it is a folder
    for (const folder of [one, two]) await Deno.writeTextFile(join(folder, "redis-server"), "");
    const path = ["", join(root, "nowhere"), one, two].join(delimiter);
    assert.deepEqual(
      findPrograms(
        ["redis-server", "valkey-server", "docker", join(two, "docker"), "/no/such"],
        path,
      ),
      [join(one, "redis-server"), join(two, "docker"), join(two, "docker")],
    );
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
