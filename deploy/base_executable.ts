import type { Target } from "./compile_plan.ts";

/** Bytes at the start of an executable that say what system it is for. */
export const HEADER_BYTES = 4096;

const ELF = 0x7f454c46;
const ELF_MACHINES: ReadonlyMap<number, Target> = new Map([
  [62, "linux-x64"],
  [183, "linux-arm64"],
]);
const MACH_O_64 = 0xfeedfacf;
const MACH_O_MACHINES: ReadonlyMap<number, Target> = new Map([
  [0x0100_0007, "macos-x64"],
  [0x0100_000c, "macos-arm64"],
]);
const DOS = 0x4d5a; // "MZ"
const PE = 0x5045_0000; // "PE" and two zeros
const PE_MACHINES: ReadonlyMap<number, Target> = new Map([[0x8664, "windows-x64"]]);

/**
 * Returns the system that an executable is for, by its first `HEADER_BYTES` (ELF, Mach-O or PE).
 * Undefined for every other system, and for a file that is no executable.
 */
export function systemOf(header: Uint8Array): Target | undefined {
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  if (view.byteLength < 64) return undefined;
  if (view.getUint32(0) === ELF) {
    const [is64Bit, isLittle, abi] = [view.getUint8(4) === 2, view.getUint8(5) === 1, header[7]!];
    // System V or GNU: what Linux has.
    if (!is64Bit || !isLittle || (abi !== 0 && abi !== 3)) return undefined;
    return ELF_MACHINES.get(view.getUint16(18, true));
  }
  if (view.getUint32(0, true) === MACH_O_64) return MACH_O_MACHINES.get(view.getUint32(4, true));
  if (view.getUint16(0) === DOS) {
    const at = view.getUint32(60, true);
    if (at + 6 > view.byteLength || view.getUint32(at) !== PE) return undefined;
    return PE_MACHINES.get(view.getUint16(at + 4, true));
  }
  return undefined;
}

/** Reads what system the file is for. Undefined as with `systemOf`. */
export async function systemOfFile(path: string): Promise<Target | undefined> {
  using file = await Deno.open(path);
  const header = new Uint8Array(HEADER_BYTES);
  let filled = 0;
  while (filled < HEADER_BYTES) {
    const count = await file.read(header.subarray(filled));
    if (count === null) break;
    filled += count;
  }
  return systemOf(header.subarray(0, filled));
}

/**
 * Has the executable at `path` print its version. A program put behind a wrong base, such as Deno itself,
 * runs as that base does: without this program, and without its permissions being narrowed.
 * @throws {Error} if it prints anything but `version`, with or without a commit
 */
export async function tryOut(path: string, version: string): Promise<void> {
  const { stdout } = await new Deno.Command(path, { args: ["--version"], stdin: "null" }).output();
  const printed = new TextDecoder().decode(stdout).trim();
  if (printed.split(" (")[0] === version) return;
  throw new Error(
    `${path} is not Causeway: its --version prints ${JSON.stringify(printed)}. ` +
      "DENORT_BIN must be Deno's base executable (denort) of the compiler's version",
  );
}
