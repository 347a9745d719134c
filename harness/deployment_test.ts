import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { PYTHON_CHECKERS_HOME } from "./databases/mod.ts";
import { PROJECT_DIRECTORY } from "./process/own_program.ts";
import { runProgram } from "./process/run_program.ts";

const DEPLOY = join(PROJECT_DIRECTORY, "deploy");

// Fields of manifests that are looked at below; the schemas check the others.
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly selector?: Readonly<Record<string, unknown>>;
    readonly podSelector?: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly ports?: readonly { readonly targetPort: string }[];
    readonly ingress?: readonly { readonly ports: readonly { readonly port: string }[] }[];
    readonly serviceName?: string;
    readonly replicas?: number;
    readonly template?: PodTemplate;
  };
}

interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly terminationGracePeriodSeconds: number;
    readonly securityContext: { readonly runAsNonRoot: boolean; readonly runAsUser: number };
    readonly containers: readonly Container[];
  };
}

interface Container {
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly securityContext: Readonly<Record<string, unknown>>;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Kustomization {
  readonly resources: readonly string[];
  readonly configMapGenerator?: readonly { readonly files: readonly string[] }[];
}

interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
}

interface ComposeService {
  readonly image: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly volumes?: readonly string[];
}

async function python(...args: string[]): Promise<string> {
  const ended = await runProgram("/usr/bin/python3", args, {
    env: { PYTHONPATH: PYTHON_CHECKERS_HOME },
  });
  assert.equal(ended?.code, 0, `python3 ${args.join(" ")}: ${ended?.output}${ended?.errors}`);
  return ended.output;
}

async function documents<T>(file: string): Promise<readonly T[]> {
  const script =
    "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
  return JSON.parse(await python("-c", script, file)) as T[];
}

async function manifestFiles(): Promise<readonly string[]> {
  const files: string[] = [];
  for (const folder of ["base", "dc1"]) {
    for await (const { name } of Deno.readDir(join(DEPLOY, "kubernetes", folder))) {
      if (name.endsWith(".yaml") && name !== "kustomization.yaml") {
        files.push(join(DEPLOY, "kubernetes", folder, name));
      }
    }
  }
  return files.sort();
}

/** Every manifest by kind and name, as `StatefulSet/causeway`. */
async function manifests(): Promise<ReadonlyMap<string, Manifest>> {
  const all = new Map<string, Manifest>();
  for (const file of await manifestFiles()) {
    for (const each of await documents<Manifest>(file)) {
      all.set(`${each.kind}/${each.metadata.name}`, each);
    }
  }
  return all;
}

Deno.test("the manifests are of Kubernetes' schemas, and a kustomization names each of them", async () => {
  const files = await manifestFiles();
  await python("-m", "kubernetes_validate", "--strict", "--quiet", "--no-warn", ...files);
  const named: string[] = [];
  for (const folder of ["base", "dc1"]) {
    const path = join(DEPLOY, "kubernetes", folder);
    const [kustomization] = await documents<Kustomization>(join(path, "kustomization.yaml"));
    named.push(...kustomization!.resources.map((file) => join(path, file)));
    for (const { files } of kustomization!.configMapGenerator ?? []) {
      for (const entry of files) assert.ok(await isFile(join(path, entry.split("=")[1]!)), entry);
    }
  }
  assert.deepEqual(named.filter((path) => path.endsWith(".yaml")).sort(), files);
});

async function isFile(path: string): Promise<boolean> {
  return (await Deno.stat(path)).isFile;
}

Deno.test("pods have no rights, are probed as alive and ready apart, and get time to stop", async () => {
  const all = await manifests();
  const { template } = all.get("StatefulSet/causeway")!.spec;
  const { spec } = template!;
  assert.equal(spec.securityContext.runAsNonRoot, true);
  const [container] = spec.containers;
  assert.deepEqual(container!.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
  assert.deepEqual(container!.livenessProbe.httpGet, { path: "/livez", port: "admin" });
  assert.deepEqual(container!.readinessProbe.httpGet, { path: "/readyz", port: "admin" });
  assert.ok(spec.terminationGracePeriodSeconds > 8, "limits.shutdown_timeout is 8 s");
  const image = await Deno.readTextFile(join(DEPLOY, "container/Containerfile"));
  const user = String(spec.securityContext.runAsUser);
  assert.match(image, new RegExp(`^USER ${user}:${user}$`, "m"));
  const exposed = /^EXPOSE (.*)$/m.exec(image)![1]!.split(" "); // without one the test fails
  for (const { name, containerPort } of container!.ports) {
    assert.ok(exposed.includes(String(containerPort)), name);
  }
});

Deno.test("an image has what the commands on its pages make, and its build sees nothing else", async () => {
  const read = (path: string) => Deno.readTextFile(join(PROJECT_DIRECTORY, path));
  const image = await read("deploy/container/Containerfile");
  const copied = [...image.matchAll(/^COPY (?:--\S+ )*(.+) \S+$/gm)]
    .flatMap(([, sources]) => sources!.split(" "));
  assert.deepEqual(copied, ["dist/causeway", "LICENSE", "dist/licences.md"]);
  const ignored = (await read(".dockerignore")).split("\n").filter((line) => !/^(#|$)/.test(line));
  assert.equal(ignored[0], "*");
  assert.deepEqual(ignored.slice(1).toSorted(), copied.map((each) => `!${each}`).toSorted());
  // `dist/licences.md` is of the first task, `dist/causeway` of the second.
  for (
    const page of [
      image,
      await read("deploy/compose/compose.yaml"),
      await read("docs/operations.md"),
    ]
  ) {
    assert.match(page, /deno task sbom && deno task compile/);
  }
});

Deno.test("services, policies and budgets select the pods of the nodes, and ports that these have", async () => {
  const all = await manifests();
  const { template, serviceName, replicas } = all.get("StatefulSet/causeway")!.spec;
  assert.ok(all.has(`Service/${serviceName}`));
  const { labels } = template!.metadata;
  const ports = new Set(template!.spec.containers[0]!.ports.map(({ name }) => name));
  const pods = Array.from({ length: replicas! }, (_, place) => `causeway-${place}`);
  const reached: string[] = [];
  for (const [name, { kind, spec }] of all) {
    if (kind === "Service") {
      const { "statefulset.kubernetes.io/pod-name": pod, ...selector } = spec.selector!;
      assert.deepEqual(selector, labels, name);
      if (typeof pod === "string") reached.push(pod);
      for (const { targetPort } of spec.ports!) assert.ok(ports.has(targetPort), name);
    }
    if (kind === "PodDisruptionBudget") assert.deepEqual(spec.selector!["matchLabels"], labels);
    if (kind === "NetworkPolicy") {
      assert.deepEqual(spec.podSelector!.matchLabels, labels);
      const open = spec.ingress!.flatMap((rule) => rule.ports.map(({ port }) => port));
      assert.deepEqual(new Set(open), ports, name);
    }
  }
  assert.deepEqual(reached.sort(), pods, "other datacenters reach each node");
  const [kustomization] = await documents<Kustomization>(
    join(DEPLOY, "kubernetes/dc1/kustomization.yaml"),
  );
  const nodes = kustomization!.configMapGenerator!.flatMap(({ files }) =>
    files.map((entry) => entry.split(".toml=")[0]!)
  );
  assert.deepEqual(nodes.sort(), pods, "a configuration for each node");
});

Deno.test("the Compose file is of its schema; each datacenter has its own files and no rights", async () => {
  const file = join(DEPLOY, "compose/compose.yaml");
  await python("-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", file);
  const [compose] = await documents<ComposeFile>(file);
  for (const name of ["dc1", "dc2", "dc3"]) {
    const service = compose!.services[name]!;
    assert.equal(service.read_only, true, name);
    assert.deepEqual(service.cap_drop, ["ALL"], name);
    assert.deepEqual(service.volumes, [`./${name}:/etc/causeway:ro`], name);
  }
});

Deno.test("causeway check accepts the configurations of Compose and Kubernetes", async () => {
  const directory = await Deno.makeTempDir({
    dir: join(PROJECT_DIRECTORY, ".tmp"),
    prefix: "deploy-",
  });
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(directory, { recursive: true }));
  const script = join(directory, "make_certificates");
  await Deno.copyFile(join(DEPLOY, "compose/make_certificates"), script);
  const files: string[] = [];
  for (const name of ["dc1", "dc2", "dc3"]) {
    const file = join(directory, name, "causeway.toml");
    await Deno.mkdir(dirname(file));
    await Deno.copyFile(join(DEPLOY, "compose", name, "causeway.toml"), file);
    files.push(file);
  }
  assert.equal((await runProgram("/bin/sh", [script]))?.code, 0);
  await Deno.mkdir(join(directory, "tls"));
  for (const [from, to] of [["dc1.pem", "tls.crt"], ["dc1.key", "tls.key"], ["ca.pem", "ca.crt"]]) {
    await Deno.copyFile(join(directory, "dc1", from!), join(directory, "tls", to!));
  }
  for (const name of ["node_0.toml", "node_1.toml"]) {
    const text = await Deno.readTextFile(join(DEPLOY, "kubernetes/dc1", name));
    await Deno.writeTextFile(join(directory, name), text.replaceAll("/etc/causeway", directory));
    files.push(join(directory, name));
  }
  const env = { CAUSEWAY_ADMIN_TOKEN: "a".repeat(32), CAUSEWAY_DB_PASSWORD: "b" };
  for (const file of files) {
    const ended = await runProgram(Deno.execPath(), [
      ...["run", "--no-prompt", "-R", "-E", "-S=hostname", "mod.ts", "check", "--config", file],
    ], { cwd: PROJECT_DIRECTORY, env });
    assert.match(ended?.output ?? "", /: ok\n$/, ended?.errors ?? "no Deno");
  }
});
