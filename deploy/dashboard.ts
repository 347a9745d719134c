/**
 * `deno task dashboard`: bundles the dashboard from `src/admin/dashboard/` into one module of text,
 * `src/admin/dashboard_files.gen.ts`. Nodes serve the page from there, from source and compiled.
 *
 * The module is under version control, so that nobody has to build anything before `deno task serve`. It names the
 * digest of its sources: `deploy/dashboard_test.ts` fails when it is older than they are.
 */
import { sourceDigest } from "./dashboard_sources.ts";

const SOURCE = "src/admin/dashboard";
const TARGET = "src/admin/dashboard_files.gen.ts";

const bundled = await new Deno.Command(Deno.execPath(), {
  args: ["bundle", "--quiet", "--minify", "--platform", "browser", `${SOURCE}/main.tsx`],
  stderr: "inherit",
}).output();
if (!bundled.success) Deno.exit(1);

const files = {
  page: await Deno.readTextFile(`${SOURCE}/page.html`),
  script: new TextDecoder().decode(bundled.stdout),
  style: await Deno.readTextFile(`${SOURCE}/style.css`),
  icon: await Deno.readTextFile(`${SOURCE}/icon.svg`),
};
const constants = Object.entries(files).map(([name, text]) =>
  `export const ${name.toUpperCase()} = ${JSON.stringify(text)};\n`
);
await Deno.writeTextFile(
  TARGET,
  "// Written by `deno task dashboard`; do not edit.\n" +
    "// deno-fmt-ignore-file\n// deno-lint-ignore-file\n\n" +
    `export const SOURCE_DIGEST = "${await sourceDigest()}";\n` + constants.join(""),
);
console.log(`${TARGET}: ${Math.round(files.script.length / 1024)} KiB of script`);
