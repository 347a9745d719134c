import assert from "node:assert/strict";
import { systemOf, systemOfFile, tryOut } from "./base_executable.ts";
import { TARGETS } from "./compile_plan.ts";

const PROJECT = new URL("../", import.meta.url);

/** Returns a header of 512 zeros with `bytes` at the places named. */
function header(bytes: Readonly<Record<number, readonly number[]>>): Uint8Array {
  const header = new Uint8Array(512);
  for (const [place, some] of Object.entries(bytes)) header.set(some, Number(place));
  return header;
}

const ELF = [0x7f, 0x45, 0x4c, 0x46];
const MACH_O = [0xcf, 0xfa, 0xed, 0xfe];
const MZ = [0x4d, 0x5a];
const PE = [0x50, 0x45, 0, 0];

Deno.test("systemOf() tells the systems of executables apart", () => {
  for (
    const [name, bytes] of [
      ["linux-x64", { 0: [...ELF, 2, 1, 1, 0], 18: [62, 0] }],
      ["linux-arm64", { 0: [...ELF, 2, 1, 1, 3], 18: [183, 0] }],
      ["macos-x64", { 0: [...MACH_O, 7, 0, 0, 1] }],
      ["macos-arm64", { 0: [...MACH_O, 12, 0, 0, 1] }],
      ["windows-x64", { 0: MZ, 60: [0x18, 1, 0, 0], 0x118: [...PE, 0x64, 0x86] }],
    ] as const
  ) {
    assert.equal(systemOf(header(bytes)), name);
  }
});

Deno.test("systemOf() does not know other systems, and files that are no executables", () => {
  for (
    const [what, bytes] of [
      ["32 bits", { 0: [...ELF, 1, 1, 1, 0], 18: [3, 0] }],
      ["FreeBSD", { 0: [...ELF, 2, 1, 1, 9], 18: [62, 0] }],
      ["RISC-V", { 0: [...ELF, 2, 1, 1, 0], 18: [243, 0] }],
      ["several systems in one", { 0: [0xca, 0xfe, 0xba, 0xbe] }],
      ["Windows on ARM", { 0: MZ, 60: [64, 0, 0, 0], 64: [...PE, 0x64, 0xaa] }],
      ["a header past the end", { 0: MZ, 60: [0xff, 0xff, 0xff, 0xff] }],
      ["a header just past the end", { 0: MZ, 60: [0xfb, 1, 0, 0], 0x1fb: PE }],
      ["DOS", { 0: MZ }],
      ["text", { 0: [0x23, 0x21, 0x2f] }],
    ] as const
  ) {
    assert.equal(systemOf(header(bytes)), undefined, what);
  }
  for (const length of [0, 1, 63]) assert.equal(systemOf(new Uint8Array(length)), undefined);
});

Deno.test("systemOfFile() knows the system of the Deno that runs it", async () => {
  const system = await systemOfFile(Deno.execPath());
  assert.equal(system && TARGETS[system], Deno.build.target);
});

Deno.test("tryOut() refuses an executable that runs as its base, and takes one that is the program", async () => {
  await assert.rejects(tryOut(Deno.execPath(), "0.2.0"), /is not Causeway.*prints "deno \d/);
  const program = await Deno.makeTempFile();
  try {
    await Deno.chmod(program, 0o755);
    for (const printed of ["0.2.0", "0.2.0 (1e793a9d40c2, 2026-11-24)"]) {
      await Deno.writeTextFile(program, `#!/bin/sh\necho '${printed}'\n`);
      await tryOut(program, "0.2.0");
    }
    await assert.rejects(tryOut(program, "0.2"), /is not Causeway/);
  } finally {
    await Deno.remove(program);
  }
});

Deno.test("compile.ts refuses a base executable of another system before it builds", async () => {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-P=harness", "--no-prompt", "deploy/compile.ts", "--target", "windows-x64"],
    cwd: PROJECT,
    env: { DENORT_BIN: Deno.execPath() },
  }).output();
  const said = new TextDecoder().decode(stderr);
  assert.equal(code, 2, said);
  assert.match(said, /for windows-x64: the base executable .* is for [a-z]+-(x64|arm64)$/m);
});
