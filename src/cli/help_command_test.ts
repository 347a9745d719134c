import assert from "node:assert/strict";
import { main } from "./main.ts";

async function run(args: readonly string[]) {
  const out: string[] = [];
  const error: string[] = [];
  const code = await main(args, {
    out: (line) => out.push(line),
    error: (line) => error.push(line),
    readInput: () => Promise.resolve(""),
    readPassword: () => Promise.resolve(""),
  });
  return { code, out: out.join("\n"), error: error.join("\n") };
}

/** Names of the commands that a help lists. */
function listed(help: string): readonly string[] {
  const list = help.split("Commands:")[1]?.split("\n\n")[0] ?? "";
  return [...list.matchAll(/^ {2}([\w-]+)/gm)].map(([, name]) => name!);
}

Deno.test("causeway help shows the help of the command at every depth, as --help does", async () => {
  assert.deepEqual(await run(["help"]), await run(["--help"]));
  const paths: string[][] = [];
  for (const name of listed((await run(["help"])).out)) {
    const inner = listed((await run(["help", name])).out);
    paths.push([name], ...inner.map((innerName) => [name, innerName]));
  }
  for (const path of [["help"], ["backends", "copy"], ["users", "import"], ["config", "schema"]]) {
    assert.ok(paths.some((found) => found.join(" ") === path.join(" ")), path.join(" "));
  }
  for (const path of paths) {
    const help = await run([...path, "--help"]);
    assert.match(help.out, new RegExp(`^Usage: causeway ${path.join(" ")}(?: |$)`, "m"));
    assert.deepEqual(await run(["help", ...path]), help);
    const page = await run(["man", ...path]);
    const title = `.B causeway ${path.join(" ").replaceAll("-", "\\-")}`;
    assert.ok(page.out.split("\n").includes(title), title);
  }
});

Deno.test("causeway help and man refuse names that lead to no command", async () => {
  for (const command of ["help", "man"]) {
    assert.deepEqual(await run([command, "backends", "cpy"]), {
      code: 1,
      out: "",
      error: "causeway: Cannot find causeway backends cpy: causeway backends has no command cpy",
    });
  }
});
