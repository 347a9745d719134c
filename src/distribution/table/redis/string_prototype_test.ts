import assert from "node:assert/strict";

/** Prints whether the methods of strings are fast, before and after importing `module`. */
const PROBE = (module: string) => `
  const isFast = new Function("return %HasFastProperties(String.prototype)");
  console.log(isFast());
  await import(${JSON.stringify(module)});
  console.log(isFast());
`;

async function probe(module: string): Promise<string> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--v8-flags=--allow-natives-syntax", "--no-check", PROBE(module)],
  }).output();
  const decoder = new TextDecoder();
  assert.equal(decoder.decode(stderr), "");
  return decoder.decode(stdout);
}

Deno.test("the node's modules leave the methods of strings fast", async () => {
  const node = import.meta.resolve("../../../node/mod.ts");
  assert.equal(await probe(node), "true\ntrue\n");
});
