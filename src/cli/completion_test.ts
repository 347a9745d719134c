import assert from "node:assert/strict";
import { join } from "node:path";
import { EXIT_MEANINGS } from "./command_docs.ts";
import { main } from "./main.ts";

async function printed(args: readonly string[]): Promise<string> {
  const lines: string[] = [];
  const code = await main(args, {
    out: (line) => lines.push(line),
    error: (line) => lines.push(line),
    readInput: () => Promise.resolve(""),
    readPassword: () => Promise.resolve(""),
  });
  assert.equal(code, 0, lines.join("\n"));
  return lines.join("\n");
}

/** Runs a program in `directory`; everything that it writes on standard error is a failure. */
async function output(program: string, args: readonly string[], directory: string, input = "") {
  const child = new Deno.Command(program, {
    args: [...args],
    cwd: directory,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close();
  const { stdout, stderr } = await child.output();
  assert.equal(new TextDecoder().decode(stderr), "");
  return new TextDecoder().decode(stdout);
}

async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "causeway-shell-" });
  try {
    await body(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

/** What is typed, and what a shell offers for its last word. */
const CASES: readonly (readonly [words: readonly string[], offers: readonly string[]])[] = [
  [["causeway", "stat"], ["status"]],
  [["causeway", "backends", "pl"], ["plan"]],
  [["causeway", "completion", "z"], ["zsh"]],
  [["causeway", "help", "backends", "co"], ["copy"]],
  [["causeway", "man", "arch"], ["archive"]],
  [["causeway", "man", "--dir"], ["--directory"]],
  [["causeway", "where", "alice@example.com", "--tok"], ["--token-file"]],
  [["causeway", "links", "--datacenter", "dc2", "--js"], ["--json"]],
  // One name, and another kind of value.
  [["causeway", "export", "--for", "e"], ["ejabberd"]],
  [["causeway", "trace", "alice@example.com", "--for", "e"], [""]],
];

Deno.test("bash completes commands, words and options by the printed script", async () => {
  await withDirectory(async (directory) => {
    await Deno.writeTextFile(join(directory, "script"), await printed(["completion", "bash"]));
    for (const [words, offers] of CASES) {
      const found = await output("bash", [
        "-c",
        'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _causeway; ' +
        'printf "%s\\n" "${COMPREPLY[@]}"',
        "bash",
        ...words,
      ], directory);
      assert.deepEqual(found.trim().split("\n"), offers, words.join(" "));
    }
  });
});

Deno.test("fish completes commands, words and options by the printed script", async () => {
  await withDirectory(async (directory) => {
    await Deno.writeTextFile(join(directory, "script"), await printed(["completion", "fish"]));
    for (const [words, offers] of CASES) {
      const found = await output("fish", [
        "--no-config",
        "-c",
        `source ./script; complete -C ${JSON.stringify(words.join(" "))}`,
      ], directory);
      const names = found.trim().split("\n").map((line) => line.split("\t")[0]);
      assert.deepEqual(names, offers, words.join(" "));
    }
  });
});

Deno.test("zsh completes commands, words and options by the printed script", async () => {
  await withDirectory(async (directory) => {
    await Deno.writeTextFile(join(directory, "script"), await printed(["completion", "zsh"]));
    for (const [words, offers] of CASES) {
      // The functions that offer words are replaced by ones that print those that fit.
      const program = [
        "compdef() { : }",
        "_files() { : }",
        "_message() { : }",
        'offer() { local w; for w in "$@"; do [[ $w == ${words[CURRENT]}* ]] && print -r -- $w; done }',
        "_describe() { local -a all; all=(${(P)2}); offer ${all%%:*} }",
        'compadd() { shift; offer "$@" }',
        "source ./script",
        'words=("$@"); CURRENT=$#words',
        "_causeway",
        "true",
      ].join("\n");
      const found = await output("zsh", ["-f", "-c", program, "zsh", ...words], directory);
      assert.deepEqual(found.trim().split("\n"), offers, words.join(" "));
    }
  });
});

Deno.test("causeway man writes a sound page for every command, with examples and exit codes", async () => {
  await withDirectory(async (directory) => {
    await printed(["man", "--directory", directory]);
    const pages = Array.from(Deno.readDirSync(directory), ({ name }) => name);
    for (const name of ["causeway.1", "causeway-doctor.1", "causeway-backends-copy.1"]) {
      assert.ok(pages.includes(name), name);
    }
    for (const page of pages) {
      const text = await output("groff", ["-man", "-Tutf8", "-P-cbou", "-ww", page], directory);
      assert.match(text, /^EXAMPLES$/m, page);
      assert.match(text, /^EXIT STATUS$/m, page);
    }
    assert.equal(
      await printed(["man", "doctor"]) + "\n",
      await Deno.readTextFile(join(directory, "causeway-doctor.1")),
    );
  });
});

Deno.test("docs/operations.md lists every exit code", async () => {
  const page = await Deno.readTextFile(new URL("../../docs/operations.md", import.meta.url));
  const [, table] = page.split(/^\| exit code \| meaning +\|\n/m);
  const codes = [...table!.split("\n\n")[0]!.matchAll(/^\| (\d+) /gm)].map(([, code]) => code);
  assert.deepEqual(codes, Object.keys(EXIT_MEANINGS));
});

Deno.test("the help of every command shows an example", async () => {
  const page = await printed(["completion", "bash"]);
  const paths = Array.from(page.matchAll(/^ {4}"([a-z -]*)"\) names=/gm), ([, path]) => path!);
  assert.ok(paths.length > 20);
  for (const path of paths) {
    const help = await printed([...path.split(" ").filter((name) => name !== ""), "--help"]);
    assert.match(help, /\nExamples:\n {2}# /, path);
  }
});
