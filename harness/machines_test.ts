import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { PROJECT_DIRECTORY } from "./process/own_program.ts";
import { runProgram } from "./process/run_program.ts";

const MACHINES = join(PROJECT_DIRECTORY, "deploy/machines");

/** Runs a script, which must succeed, and returns its output. */
async function run(script: string, ...args: readonly string[]): Promise<string> {
  const ended = await runProgram("/bin/sh", [script, ...args]);
  assert.equal(ended?.code, 0, ended?.errors ?? "no /bin/sh");
  return ended!.output;
}

Deno.test("shellcheck finds nothing in the scripts for two machines", async () => {
  const scripts = ["install", "make_secrets"].map((name) => join(MACHINES, name));
  const ended = await runProgram("shellcheck", ["--external-sources", ...scripts], {
    cwd: MACHINES,
  });
  assert.equal(ended?.code, 0, ended?.output ?? "no shellcheck");
});

Deno.test("the scripts for two machines make sound configurations, and change nothing the second time", async () => {
  const directory = await Deno.makeTempDir({
    dir: join(PROJECT_DIRECTORY, ".tmp"),
    prefix: "machines-",
  });
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(directory, { recursive: true }));
  for (const name of ["install", "make_secrets", "site.example"]) {
    await Deno.copyFile(join(MACHINES, name), join(directory, name));
  }
  const site = join(directory, "site.example");
  const [install, makeSecrets] = [join(directory, "install"), join(directory, "make_secrets")];
  assert.match(
    await run(makeSecrets, site),
    /made: the authority\n.*made: secrets\/dc1\/node\.pem/s,
  );
  assert.equal(await run(makeSecrets, site), "");
  const secret = (dc: string, name: string) =>
    Deno.readTextFileSync(join(directory, "secrets", dc, name));
  assert.equal(secret("dc1", "database.secret"), secret("dc2", "database.secret"));
  assert.notEqual(secret("dc1", "redis.secret"), secret("dc2", "redis.secret"));
  const authority = new X509Certificate(secret("dc2", "ca.pem"));
  for (const [dc, name] of [["dc1", "node"], ["dc2", "node"], ["dc1", "database"]] as const) {
    const certificate = new X509Certificate(secret(dc, `${name}.pem`));
    assert.ok(certificate.verify(authority.publicKey), `${dc} ${name}`);
  }
  assert.throws(() => Deno.statSync(join(directory, "secrets/dc2/ca.key")), Deno.errors.NotFound);

  for (const dc of ["dc1", "dc2"] as const) {
    const root = join(directory, "root", dc);
    const main = join(root, "etc/postgresql/15/main");
    await Deno.mkdir(main, { recursive: true });
    await Deno.writeTextFile(join(main, "pg_hba.conf"), "local all postgres peer\n");
    const at = ["--root", root, site, dc] as const;
    const first = await run(install, ...at);
    assert.match(first, /^changed: \/etc\/redis\/causeway\.conf$/m);
    assert.equal(first.includes("/etc/postgresql/15/main/pg_hba.conf"), dc === "dc1");
    assert.equal(await run(install, ...at), "nothing has changed\n");
    const hba = await Deno.readTextFile(join(main, "pg_hba.conf"));
    assert.match(hba, /^local all postgres peer$/m);
    assert.equal(hba.match(/^hostssl /gm)?.length, dc === "dc1" ? 2 : undefined);
    assert.equal(Deno.statSync(join(root, "etc/causeway/node.key")).mode! & 0o777, 0o640);

    const configuration = join(root, "etc/causeway/causeway.toml");
    const checked = await runProgram(Deno.execPath(), [
      ...["run", "--no-prompt", "-R", "-E", "-S=hostname", "mod.ts"],
      ...["check", "--config", configuration],
    ], { cwd: PROJECT_DIRECTORY });
    assert.match(checked?.output ?? "", /: ok\n$/, checked?.errors ?? "no Deno");
    assert.doesNotMatch(await Deno.readTextFile(configuration), /[0-9a-f]{48}/, "no secret");

    const moved = (await Deno.readTextFile(site)).replaceAll("192.0.2.2", "192.0.2.9");
    await Deno.writeTextFile(join(directory, "moved"), moved);
    const again = await run(install, "--root", root, join(directory, "moved"), dc);
    assert.match(again, /^changed: \/etc\/causeway\/causeway\.toml$/m);
    assert.doesNotMatch(again, /redis|node\.pem/);
  }
  const refused = await runProgram("/bin/sh", [install, site, "dc3"]);
  assert.deepEqual([refused?.code, refused?.output], [2, ""]);
});
