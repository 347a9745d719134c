import assert from "node:assert/strict";
import { Run } from "../process/mod.ts";
import {
  type CausewayConfiguration,
  causewayConfiguration,
  FREE_PORTS,
} from "./causeway_configuration.ts";
import { ImportedStores } from "./imported_stores.ts";

/** Configuration of a node in the directory of `run`, whose Redis is at `redisPort`. */
function configurationIn(run: Run, redisPort: number): CausewayConfiguration {
  return causewayConfiguration({
    globalHost: "example.com",
    localHost: "dc1.example.com",
    nodeName: "node1@dc1.example.com",
    ports: FREE_PORTS,
    components: [],
    certificate: { certfile: run.path("dc1.pem"), keyfile: run.path("dc1.key") },
    cafile: run.path("ca.pem"),
    database: { storage: { internal: { path: run.path("shared.sqlite") } } },
    redis: { host: "127.0.0.1", port: redisPort, password: "" },
    redisPlace: undefined,
    replication: "builtin",
    hasArchives: false,
    seeds: [],
    addresses: { "dc2.example.com": [{ host: "127.0.0.1", port: redisPort + 1 }] },
  });
}

/** Stores that count their imports. An import writes its number. */
class CountedStores {
  readonly #stores = new ImportedStores();
  imports = 0;

  /** Fills a store of a new run. Returns its content. */
  async fill(
    list: string,
    configure: (configuration: CausewayConfiguration) => void = () => {},
    beside = "",
  ): Promise<string> {
    await using run = await Run.start();
    const configuration = configurationIn(run, 6000 + this.imports);
    configure(configuration);
    const { path } = configuration.storage.internal;
    await this.#stores.fill({ configuration, list, run }, async () => {
      this.imports++;
      await Deno.writeTextFile(path, `import ${this.imports}`, { mode: 0o600 });
      if (beside !== "") await Deno.writeTextFile(path + beside, "");
    });
    if (Deno.build.os !== "windows") assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
    return await Deno.readTextFile(path);
  }
}

Deno.test("ImportedStores.fill() copies the store of an import with the same inputs", async () => {
  const stores = new CountedStores();
  assert.equal(await stores.fill("alice"), "import 1");
  assert.equal(await stores.fill("alice"), "import 1");
  assert.equal(stores.imports, 1);
});

Deno.test("ImportedStores.fill() imports anew for another list or another configuration", async () => {
  const stores = new CountedStores();
  assert.equal(await stores.fill("alice"), "import 1");
  assert.equal(await stores.fill("bob"), "import 2");
  const withOptions = (configuration: CausewayConfiguration) => {
    configuration["auth"] = { password: { hash: ["sha256"] } };
  };
  assert.equal(await stores.fill("alice", withOptions), "import 3");
  assert.equal(await stores.fill("alice", withOptions), "import 3");
});

Deno.test("ImportedStores.fill() copies no store that has a journal beside it", async () => {
  for (const journal of ["-wal", "-journal"]) {
    const stores = new CountedStores();
    assert.equal(await stores.fill("alice", undefined, journal), "import 1");
    assert.equal(await stores.fill("alice"), "import 2");
  }
});

Deno.test("ImportedStores.fill() keeps nothing of an import that fails", async () => {
  await using run = await Run.start();
  const stores = new ImportedStores();
  const wanted = { configuration: configurationIn(run, 6000), list: "alice", run };
  await assert.rejects(stores.fill(wanted, () => Promise.reject(new Error("no"))), /no/);
  let isImported = false;
  await stores.fill(wanted, async () => {
    isImported = true;
    await Deno.writeTextFile(run.path("shared.sqlite"), "");
  });
  assert.ok(isImported);
});
