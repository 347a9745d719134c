import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const MODULE = new URL("./give_up_permissions.ts", import.meta.url);

/** Runs a program that gives up permissions, and returns what it may still do. */
async function rightsAfter(args: readonly string[], directory: string): Promise<string[]> {
  const code = `
    import { giveUpPermissions } from "${MODULE}";
    giveUpPermissions(JSON.parse(Deno.args[0]), Deno.args[1]);
    for (const name of ["run", "read", "write"]) {
      const path = name === "run" ? undefined : Deno.args[1];
      console.log(Deno.permissions.requestSync({ name, path }).state);
    }
    try { new Deno.Command(Deno.execPath(), { args: ["--version"] }).outputSync(); console.log("ran"); }
    catch (thrown) { console.log(thrown.name); }
    console.log(Deno.permissions.querySync({ name: "read", path: Deno.args[2] }).state);
  `;
  const other = fileURLToPath(new URL(".", import.meta.url));
  const file = join(directory, "try.mjs");
  await Deno.writeTextFile(file, code);
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--no-prompt", "--no-config", "--quiet", "--allow-run"],
      ...[`--allow-read=${directory},${other}`, `--allow-write=${directory}`],
      ...[file, JSON.stringify(args), directory, other],
    ],
  }).output();
  const text = new TextDecoder().decode(stdout);
  assert.notEqual(text, "", new TextDecoder().decode(stderr));
  return text.trimEnd().split("\n");
}

Deno.test("giveUpPermissions() leaves a node no program and no file of the cluster", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const args = ["serve", "--config", "/etc/causeway/causeway.toml"];
    assert.deepEqual(await rightsAfter(args, directory), [
      ...["denied", "denied", "denied", "NotCapable", "granted"],
    ]);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("giveUpPermissions() leaves a node of the cluster its files, and no program", async () => {
  const directory = await Deno.makeTempDir();
  try {
    for (const args of [["--config", `${directory}/a.toml`], [`--config=${directory}/a.toml`]]) {
      assert.deepEqual(await rightsAfter(["serve", ...args], directory), [
        ...["denied", "granted", "granted", "NotCapable", "granted"],
      ]);
    }
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
