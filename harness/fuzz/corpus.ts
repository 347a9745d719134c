import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../fixtures/fuzz", import.meta.url));

/** Inputs that once were a finding of a target. */
export async function readCorpus(target: string): Promise<Uint8Array[]> {
  const inputs: Uint8Array[] = [];
  for (const name of await corpusFiles(target)) {
    inputs.push(await Deno.readFile(join(FOLDER, target, name)));
  }
  return inputs;
}

/** Names of the kept inputs, sorted. */
export async function corpusFiles(target: string): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(join(FOLDER, target))) {
    if (entry.name.endsWith(".bin")) names.push(entry.name);
  }
  return names.sort();
}

/** Valid inputs that are kept for a target, in the order of their names. */
export function readSeeds(target: string): readonly Uint8Array[] {
  const folder = join(FOLDER, target, "seeds");
  const names = Array.from(Deno.readDirSync(folder), ({ name }) => name);
  return names.sort().map((name) => Deno.readFileSync(join(folder, name)));
}

/** Keeps an input; gives the path of its file. */
export async function keepInput(target: string, input: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", input.slice());
  const name = `${new Uint8Array(digest).toHex().slice(0, 16)}.bin`;
  const path = join(FOLDER, target, name);
  await Deno.writeFile(path, input);
  return path;
}
