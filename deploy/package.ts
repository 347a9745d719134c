/**
 * `deno task package`: makes the Debian package of `dist/causeway`, `dist/causeway_VERSION_ARCH.deb`, with
 * its user, its unit, an example of a configuration, manual pages and completions. `dpkg-deb` does the
 * work. One executable gives the same bytes each time.
 */
import project from "../deno.json" with { type: "json" };
import { controlFile, debianArchitecture, debianVersion } from "./package_plan.ts";

const PROGRAM = "dist/causeway";
/** The bundle that the executable was made of. It may write where Deno lets it. */
const BUNDLE = "dist/causeway.js";

interface PackedFile {
  /** Path in the package. */
  readonly path: string;
  /** File to copy, or the text itself. */
  readonly source: { readonly file: string } | { readonly text: string };
  readonly mode?: number;
}

async function output(program: string, ...args: string[]): Promise<string> {
  const ended = await new Deno.Command(program, { args, stderr: "inherit" }).output();
  if (!ended.success) throw new Error(`${program} ${args[0]} ended with code ${ended.code}`);
  return new TextDecoder().decode(ended.stdout);
}

/** Has the program write the pages of all its commands into `directory`. */
async function manualPages(directory: string): Promise<readonly PackedFile[]> {
  await output(
    Deno.execPath(),
    ...["run", "--no-config", "--cached-only", "--no-prompt", "--allow-read", "--allow-env"],
    ...["--allow-run", "--allow-sys=hostname,uid", `--allow-write=${directory}`],
    ...[BUNDLE, "man", "--directory", directory],
  );
  const names = [];
  for await (const { name } of Deno.readDir(directory)) names.push(name);
  return names.sort().map((name) => (
    { path: `usr/share/man/man1/${name}`, source: { file: `${directory}/${name}` } }
  ));
}

async function filesToPack(manual: string): Promise<readonly PackedFile[]> {
  const printed = async (...args: string[]) => ({ text: await output(PROGRAM, ...args) });
  const doc = "usr/share/doc/causeway";
  const pages = [];
  for await (const { name } of Deno.readDir("docs")) pages.push(name);
  return [
    { path: "usr/bin/causeway", source: { file: PROGRAM }, mode: 0o755 },
    { path: "lib/systemd/system/causeway.service", source: { file: "deploy/causeway.service" } },
    ...await manualPages(manual),
    {
      path: "usr/share/bash-completion/completions/causeway",
      source: await printed("completion", "bash"),
    },
    {
      path: "usr/share/zsh/vendor-completions/_causeway",
      source: await printed("completion", "zsh"),
    },
    {
      path: "usr/share/fish/vendor_completions.d/causeway.fish",
      source: await printed("completion", "fish"),
    },
    {
      path: `${doc}/examples/causeway.toml`,
      source: { file: "deploy/debian/causeway.toml" },
    },
    { path: `${doc}/copyright`, source: { file: "LICENSE" } },
    { path: `${doc}/licences.md`, source: { file: "dist/licences.md" } },
    ...pages.sort().filter((name) => name.endsWith(".md"))
      .map((name) => ({ path: `${doc}/${name}`, source: { file: `docs/${name}` } })),
  ];
}

/** Lays the files out below `root`, all with the same time, and returns their KiB. */
async function layOut(root: string, files: readonly PackedFile[]): Promise<number> {
  let bytes = 0;
  for (const { path, source, mode = 0o644 } of files) {
    const target = `${root}/${path}`;
    await Deno.mkdir(target.slice(0, target.lastIndexOf("/")), { recursive: true });
    if ("file" in source) await Deno.copyFile(source.file, target);
    else await Deno.writeTextFile(target, source.text);
    await Deno.chmod(target, mode);
    bytes += (await Deno.stat(target)).size;
  }
  return Math.ceil(bytes / 1024);
}

const root = await Deno.makeTempDir({ prefix: "causeway-package-" });
const manual = await Deno.makeTempDir({ prefix: "causeway-manual-" });
try {
  await Deno.chmod(root, 0o755);
  const version = debianVersion(project.version);
  const architecture = debianArchitecture(Deno.build.arch);
  await Deno.mkdir(`${root}/etc/causeway`, { recursive: true });
  const installedKib = await layOut(root, await filesToPack(manual));
  await layOut(root, [
    {
      path: "DEBIAN/control",
      source: { text: controlFile({ version, architecture, installedKib }) },
    },
    ...["postinst", "prerm", "postrm"].map((name) => (
      { path: `DEBIAN/${name}`, source: { file: `deploy/debian/${name}` }, mode: 0o755 }
    )),
  ]);
  const path = `dist/causeway_${version}_${architecture}.deb`;
  Deno.env.set("SOURCE_DATE_EPOCH", "0"); // dpkg-deb writes no later time than this
  await output("dpkg-deb", "--build", "--root-owner-group", "-Zxz", "-z1", root, path);
  console.log(path);
} finally {
  for (const directory of [root, manual]) await Deno.remove(directory, { recursive: true });
}
