import assert from "node:assert/strict";
import {
  parseTargets,
  programFlags,
  programPath,
  stampBundle,
  targetOf,
  TARGETS,
} from "./compile_plan.ts";

Deno.test("parseTargets() takes systems by name, all of them, or the one at hand", () => {
  assert.deepEqual(parseTargets([]), [undefined]);
  assert.deepEqual(parseTargets(["--target", "linux-arm64", "--target=windows-x64"]), [
    "linux-arm64",
    "windows-x64",
  ]);
  assert.deepEqual(parseTargets(["--target", "all"]), Object.keys(TARGETS));
});

Deno.test("parseTargets() refuses everything else", () => {
  for (const args of [["--target"], ["--target", "amiga"], ["linux-x64"], ["--target=", "x"]]) {
    assert.throws(() => parseTargets(args), RangeError, args.join(" "));
  }
});

Deno.test("targetOf() returns the system by Deno's name of it", () => {
  assert.equal(targetOf("aarch64-apple-darwin"), "macos-arm64");
  assert.equal(targetOf("x86_64-unknown-freebsd"), undefined);
});

Deno.test("programPath() tells the executables of different systems apart", () => {
  assert.equal(programPath(undefined), "dist/causeway");
  assert.equal(programPath("macos-arm64"), "dist/causeway-macos-arm64");
  assert.equal(programPath("windows-x64"), "dist/causeway-windows-x64.exe");
});

Deno.test("programFlags() grants directories by name, and writing to fewer", () => {
  const flags = programFlags(undefined, { read: ["/srv/r"], write: ["/srv/w"] });
  const own = "/var/lib/causeway,/run/causeway";
  assert.ok(flags.includes(`--allow-read=/etc/causeway,${own},causeway-cluster,/srv/r`));
  assert.ok(
    flags.includes(`--allow-write=${own},/run/systemd/notify,causeway-cluster,/srv/w`),
  );
});

Deno.test("stampBundle() keeps a commit from becoming code", () => {
  const text = stampBundle("1;", '"; throw 1; "');
  assert.equal(text, 'globalThis.causewayCommit = "\\"; throw 1; \\"";\n1;');
});
