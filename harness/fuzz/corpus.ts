import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Holds a folder for each target. */
export const CORPUS = fileURLToPath(new URL("../../fixtures/fuzz", import.meta.url));

/** An input that once was a finding. */
export interface KeptInput {
  readonly file: string;
  readonly input: Uint8Array;
}

/**
 * Inputs that were findings of a target. Inputs of one finding are in the order in which they were
 * sent.
 */
export async function readKept(target: string, corpus = CORPUS): Promise<readonly KeptInput[]> {
  const files: string[] = [];
  for await (const { name } of Deno.readDir(join(corpus, target))) {
    if (name.endsWith(".bin")) files.push(join(corpus, target, name));
  }
  return await Promise.all(
    files.sort().map(async (file) => ({ file, input: await Deno.readFile(file) })),
  );
}

/** Valid inputs that are kept for a target, in the order of their names. */
export function readSeeds(target: string): readonly Uint8Array[] {
  const folder = join(CORPUS, target, "seeds");
  const names = Array.from(Deno.readDirSync(folder), ({ name }) => name);
  return names.sort().map((name) => Deno.readFileSync(join(folder, name)));
}

/** Keeps the inputs of one finding, in their order; gives the paths of their files. */
export async function keepFinding(
  target: string,
  inputs: readonly Uint8Array[],
  { corpus = CORPUS }: { readonly corpus?: string } = {},
): Promise<readonly string[]> {
  const whole = await new Blob(inputs.map((input) => input.slice())).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
  const name = digest.toHex().slice(0, 16);
  const paths: string[] = [];
  for (const [index, input] of inputs.entries()) {
    const number = inputs.length === 1 ? "" : `-${String(index).padStart(3, "0")}`;
    const path = join(corpus, target, `${name}${number}.bin`);
    await Deno.writeFile(path, input);
    paths.push(path);
  }
  return paths;
}
