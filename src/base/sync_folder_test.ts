import assert from "node:assert/strict";
import { join } from "node:path";
import { syncFolder } from "./sync_folder.ts";

Deno.test("syncFolder() takes folders that may be read or not, and names one that is missing", async () => {
  const folder = await Deno.makeTempDir({ prefix: "causeway-folder-" });
  await syncFolder(folder);
  await Deno.chmod(folder, 0o300);
  await syncFolder(folder);
  await assert.rejects(syncFolder(join(folder, "missing")), Deno.errors.NotFound);
  await Deno.remove(folder, { recursive: true });
});
