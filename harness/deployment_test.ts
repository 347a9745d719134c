import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { PYTHON_CHECKERS_HOME } from "./databases/mod.ts";
import { PROJECT_DIRECTORY } from "./process/own_program.ts";
import { runProgram } from "./process/run_program.ts";

const DEPLOY = join(PROJECT_DIRECTORY, "deploy");

const KUBERNETES = join(DEPLOY, "kubernetes");

// Fields of manifests that are looked at below; the schemas check the others.
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  /** Files of a ConfigMap. */
  readonly data?: Readonly<Record<string, string>>;
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
    readonly volumes: readonly { readonly configMap?: { readonly name: string } }[];
  };
}

interface Container {
  readonly image: string;
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly securityContext: Readonly<Record<string, unknown>>;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
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

/** Configuration of an OpenTelemetry Collector. */
interface CollectorFile {
  readonly receivers: {
    readonly otlp: { readonly protocols: { readonly http: { readonly endpoint: string } } };
  };
  readonly processors: Readonly<Record<string, unknown>>;
  readonly exporters: Readonly<Record<string, unknown>>;
  readonly service: { readonly pipelines: Readonly<Record<string, CollectorPipeline>> };
}

type CollectorPipeline = Readonly<
  Record<"receivers" | "processors" | "exporters", readonly string[]>
>;

function read(path: string): Promise<string> {
  return Deno.readTextFile(join(PROJECT_DIRECTORY, path));
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

/** Renders a folder's kustomization as `kubectl apply -k` does. */
async function render(folder: string): Promise<string> {
  const ended = await runProgram(join(PYTHON_CHECKERS_HOME, "bin/kubectl"), ["kustomize", folder]);
  assert.equal(ended?.code, 0, ended?.errors ?? "no kubectl");
  assert.equal(ended.errors, "", folder);
  return ended.output;
}

/** Manifests that a folder's kustomization gives, by kind and name, as `StatefulSet/causeway`. */
async function manifests(folder = join(KUBERNETES, "dc1")): Promise<ReadonlyMap<string, Manifest>> {
  const file = await Deno.makeTempFile({ suffix: ".yaml" });
  try {
    await Deno.writeTextFile(file, await render(folder));
    await python("-m", "kubernetes_validate", "--strict", "--quiet", "--no-warn", file);
    const all = await documents<Manifest>(file);
    return new Map(all.map((each) => [`${each.kind}/${each.metadata.name}`, each]));
  } finally {
    await Deno.remove(file);
  }
}

/** Returns the name of the ConfigMap that the pods mount, and its files. */
function mountedFiles(all: ReadonlyMap<string, Manifest>) {
  const { volumes } = all.get("StatefulSet/causeway")!.spec.template!.spec;
  const [name] = volumes.flatMap(({ configMap }) => configMap?.name ?? []);
  return { name: name!, files: all.get(`ConfigMap/${name}`)?.data ?? {} };
}

Deno.test("every kustomization gives manifests of Kubernetes' schemas, from all files beside it", async () => {
  const rendered = new Set<string>();
  for await (const { name } of Deno.readDir(KUBERNETES)) {
    const all = await manifests(join(KUBERNETES, name));
    const isBase = name === "base";
    for (const [what, { metadata }] of all) {
      if (!isBase) assert.equal(metadata.namespace, "causeway", `${name}: ${what}`);
      rendered.add(what);
    }
    const { image } = all.get("StatefulSet/causeway")!.spec.template!.spec.containers[0]!;
    assert.match(image, isBase ? /^causeway$/ : /^registry\.example\.com\/causeway:\d/);
    for await (const { name: file } of Deno.readDir(join(KUBERNETES, name))) {
      if (file === "kustomization.yaml" || !file.endsWith(".yaml")) continue;
      for (const { kind, metadata } of await documents<Manifest>(join(KUBERNETES, name, file))) {
        assert.ok(all.has(`${kind}/${metadata.name}`), `${name}/${file} is named nowhere`);
      }
    }
  }
  assert.ok(rendered.has("StatefulSet/causeway") && rendered.has("Service/causeway-links-0"));
});

Deno.test("a changed configuration gives the pods another ConfigMap, so that they are replaced", async () => {
  const copy = await Deno.makeTempDir();
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(copy, { recursive: true }));
  for (const folder of ["base", "dc1"]) {
    await Deno.mkdir(join(copy, folder));
    for await (const { name } of Deno.readDir(join(KUBERNETES, folder))) {
      await Deno.copyFile(join(KUBERNETES, folder, name), join(copy, folder, name));
    }
  }
  const before = mountedFiles(await manifests(join(copy, "dc1")));
  assert.deepEqual(before, mountedFiles(await manifests()));
  await Deno.writeTextFile(join(copy, "dc1/node_1.toml"), "# changed\n", { append: true });
  const after = mountedFiles(await manifests(join(copy, "dc1")));
  assert.notEqual(after.name, before.name);
  assert.match(after.files["causeway-1.toml"]!, /# changed\n$/);
});

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
  const configurations = Object.keys(mountedFiles(all).files).sort();
  assert.deepEqual(configurations, pods.map((pod) => `${pod}.toml`), "one for each node");
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

Deno.test("the collector takes every signal of a node at the port that the documentation names, and uses all that it defines", async () => {
  const [collector] = await documents<CollectorFile>(
    join(DEPLOY, "opentelemetry/collector.yaml"),
  );
  const { service: { pipelines }, receivers } = collector!;
  const options = await read("docs/configuration.md");
  const [, signals = ""] = /^\| `signals` \|[^|]*\| `(.*?)` \|/m.exec(options) ?? [];
  assert.deepEqual(Object.keys(pipelines), JSON.parse(signals));
  for (const kind of ["receivers", "processors", "exporters"] as const) {
    const defined = Object.keys(collector![kind]).toSorted();
    for (const [signal, pipeline] of Object.entries(pipelines)) {
      assert.deepEqual(pipeline[kind].toSorted(), defined, `${kind} of ${signal}`);
    }
  }
  for (const { processors } of Object.values(pipelines)) {
    assert.equal(processors[0], "memory_limiter", "it has to refuse before anything is kept");
  }
  assert.deepEqual(Object.keys(receivers.otlp.protocols), ["http"], "nodes speak no gRPC");
  const { endpoint } = receivers.otlp.protocols.http;
  const [, port] = /^127\.0\.0\.1:(\d+)$/.exec(endpoint) ?? [];
  for (const page of [options, await read("docs/operations.md")]) {
    const named = Array.from(
      page.matchAll(/\bendpoint\b.*"https?:\/\/[^"/]+:(\d+)"/g),
      ([, port]) => port,
    );
    assert.deepEqual(named, [port]);
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
  for (const [name, text] of Object.entries(mountedFiles(await manifests()).files)) {
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
