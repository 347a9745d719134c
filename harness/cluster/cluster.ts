import { CertificateAuthority, writeCertificate } from "../certificates.ts";
import { type SharedDatabase, startSharedDatabase } from "../databases/mod.ts";
import { LinkProxy } from "../faults/mod.ts";
import { NodeProcess, Run } from "../process/mod.ts";
import {
  type RedisServer,
  ReplicatingProxy,
  type ReplicationLane,
  startFailoverRedises,
  startRedises,
} from "../redis/mod.ts";
import { type Truthy, until, type UntilOptions } from "../until.ts";
import { addUsers } from "./accounts.ts";
import { causewayConfiguration } from "./causeway_configuration.ts";
import {
  type ClusterOptions,
  type ClusterUser,
  type NodePlace,
  resolveClusterOptions,
  type ResolvedClusterOptions,
} from "./cluster_options.ts";
import { type CausewayNode, Datacenter } from "./datacenter.ts";
import { LinkMesh } from "./link_mesh.ts";

/**
 * Several datacenters on loopback that share one domain, with everything around them: certificates, a
 * Redis each, replication, faulty networks and accounts.
 */
export class Cluster implements AsyncDisposable {
  readonly options: ResolvedClusterOptions;
  readonly run: Run;
  /** Issues the certificates of all datacenters. */
  readonly authority: CertificateAuthority;
  /** PEM file of `authority`, for clients. */
  readonly caFile: string;
  readonly #mesh: LinkMesh;
  readonly #datacenters: Datacenter[] = [];
  #database: SharedDatabase | undefined;
  readonly #owned = new AsyncDisposableStack();

  private constructor(
    options: ResolvedClusterOptions,
    deps: { readonly run: Run; readonly authority: CertificateAuthority; readonly mesh: LinkMesh },
  ) {
    this.options = options;
    this.run = this.#owned.use(deps.run);
    this.#mesh = this.#owned.use(deps.mesh);
    this.authority = deps.authority;
    this.caFile = this.run.path("ca.pem");
  }

  /**
   * Starts everything and resolves when every node is ready. When that fails, nothing runs on, and
   * the directory with the logs is kept.
   * @throws {RangeError} for what this version cannot do
   */
  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const resolved = resolveClusterOptions(options);
    const run = await Run.start(resolved.signal);
    const authority = await CertificateAuthority.create();
    const mesh = await LinkMesh.start(datacenterNames(resolved), resolved.nodes);
    const cluster = new Cluster(resolved, { run, authority, mesh });
    try {
      await cluster.#build();
      run.signal.throwIfAborted();
      resolved.starting?.("nodes");
      await Promise.all(cluster.#datacenters.map((datacenter) => datacenter.start()));
      run.signal.throwIfAborted();
      return cluster;
    } catch (thrown) {
      if (!run.signal.aborted) await cluster.keep();
      await cluster[Symbol.asyncDispose]();
      throw new Error(`Cannot start the cluster; its files are in ${run.directory}`, {
        cause: thrown,
      });
    }
  }

  get globalHost(): string {
    return this.options.globalHost;
  }

  get users(): readonly ClusterUser[] {
    return this.options.users;
  }

  get datacenters(): readonly Datacenter[] {
    return this.#datacenters;
  }

  /** @throws {RangeError} when none is called `name` */
  datacenter(name: string): Datacenter {
    const found = this.#datacenters.find((datacenter) => datacenter.name === name);
    if (found === undefined) throw new RangeError(`There is no datacenter ${name}`);
    return found;
  }

  /** The database that all nodes share. */
  get database(): SharedDatabase {
    return this.#database!; // `start` gives away no cluster without it
  }

  /** The proxies for links that `from` dials to `to`, one for each node there. */
  links(from: string, to: string): readonly LinkProxy[] {
    return this.#mesh.between(from, to);
  }

  /** Returns the lane that carries `from`'s writes to `to`'s Redis, with external replication. */
  replication(from: string, to: string): ReplicationLane {
    return this.datacenter(from).replicator.towards(to);
  }

  /** Parts two datacenters: links in both directions swallow everything, replication is held. */
  part(one: string, other: string): void {
    for (const [from, to] of [[one, other], [other, one]] as const) {
      for (const proxy of this.links(from, to)) proxy.blackHole();
      if (this.datacenter(from).hasReplicator) this.replication(from, to).part();
    }
  }

  /** As `part`, but tells: links in both directions break at once, and new ones are refused. */
  sever(one: string, other: string): void {
    for (const [from, to] of [[one, other], [other, one]] as const) {
      for (const proxy of this.links(from, to)) {
        proxy.refuse();
        proxy.cut();
      }
      if (this.datacenter(from).hasReplicator) this.replication(from, to).part();
    }
  }

  /** Undoes `part`, `sever`, and every other fault between the two. */
  heal(one: string, other: string): void {
    for (const [from, to] of [[one, other], [other, one]] as const) {
      for (const proxy of this.links(from, to)) proxy.heal();
      if (this.datacenter(from).hasReplicator) this.replication(from, to).heal();
    }
  }

  /** Parts one datacenter from all others. */
  isolate(name: string): void {
    for (const other of this.#others(name)) this.part(name, other);
  }

  /** Undoes `isolate`. */
  rejoin(name: string): void {
    for (const other of this.#others(name)) this.heal(name, other);
  }

  /** As the function `until`, with the end of every node's log as evidence. */
  until<T>(probe: () => T | Promise<T>, options: UntilOptions): Promise<Truthy<T>> {
    return until(probe, { evidence: () => this.tails(), ...options });
  }

  /** The end of every node's log. */
  tails(count?: number): string {
    return this.#nodes().map((node) => node.tail(count)).join("\n");
  }

  /** Keeps the run's directory: something in it is worth looking at. */
  async keep(): Promise<void> {
    await this.run.keep();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nodes first and all at once: what they say while draining still finds its way.
    await Promise.allSettled(this.#datacenters.map((each) => each[Symbol.asyncDispose]()));
    await this.#owned.disposeAsync();
  }

  async #build(): Promise<void> {
    const names = datacenterNames(this.options);
    const { starting = () => {} } = this.options;
    await Deno.writeTextFile(this.caFile, this.authority.certificatePem);
    starting("the database");
    const { redis, redisForm, redisPassword: password } = this.options;
    this.#database = this.#owned.use(
      await startSharedDatabase(this.options.database, {
        run: this.run,
        nodes: this.options.datacenters * this.options.nodes,
        args: this.options.databaseArgs,
        statements: this.options.databaseStatements,
      }),
    );
    this.run.signal.throwIfAborted();
    starting("Redis");
    const redisNames = names.map((name) => `${name}-redis`);
    const redises = redisForm === "single"
      ? await startRedises(redis, redisNames, { run: this.run, password })
      : await startFailoverRedises(redisForm, redisNames, { run: this.run });
    for (const redis of redises) this.#owned.use(redis);
    const replicators = this.options.replication === "external"
      ? await this.#startReplicators(names, redises)
      : [];
    for (const [index, name] of names.entries()) {
      const redis = redises[index]!; // one for each name
      this.#datacenters.push(await this.#datacenter(index, name, redis, replicators[index]));
    }
    this.run.signal.throwIfAborted();
    starting("accounts");
    await addUsers(this.#nodes()[0]!, {
      options: this.options,
      run: this.run,
      database: this.database,
    });
  }

  async #startReplicators(
    names: readonly string[],
    redises: readonly RedisServer[],
  ): Promise<readonly ReplicatingProxy[]> {
    const proxies = redises.map((redis) => new ReplicatingProxy(() => redis.address));
    for (const proxy of proxies) this.#owned.use(proxy);
    await Promise.all(proxies.map((proxy) => proxy.start()));
    for (const [here, proxy] of proxies.entries()) {
      for (const [there, redis] of redises.entries()) {
        if (here !== there) proxy.replicateTo(names[there]!, () => redis.address);
      }
    }
    return proxies;
  }

  async #datacenter(
    index: number,
    name: string,
    redis: RedisServer,
    replicator: ReplicatingProxy | undefined,
  ): Promise<Datacenter> {
    const localHost = `${name}.${this.globalHost}`;
    const certificate = await writeCertificate(
      await this.authority.issue({
        names: [localHost, this.globalHost, "localhost"],
        addresses: ["127.0.0.1"],
      }),
      { directory: this.run.directory, name },
    );
    const databaseLink = await this.#databaseLink(name);
    const nodes = Array.from({ length: this.options.nodes }, (_, node) => {
      const place: NodePlace = { datacenter: index, node, name, localHost };
      const databasePort = databaseLink?.address.port;
      return this.#node(place, { certificate, redis: replicator ?? redis, databasePort });
    });
    return new Datacenter({ name, localHost, nodes, redis, replicator, databaseLink });
  }

  async #databaseLink(name: string): Promise<LinkProxy | undefined> {
    if (!this.options.databaseLinks) return undefined;
    const { port } = this.database;
    if (port === undefined) throw new TypeError("Cannot link to the built-in store: it is a file");
    const link = new LinkProxy(`${name}→database`);
    await link.start();
    link.setTarget({ host: "127.0.0.1", port });
    return link;
  }

  #node(
    place: NodePlace,
    { certificate, redis, databasePort }: {
      readonly certificate: { readonly certfile: string; readonly keyfile: string };
      readonly redis: Pick<RedisServer, "address" | "place">;
      /** Undefined: that of the database itself. */
      readonly databasePort: number | undefined;
    },
  ): CausewayNode {
    const { options } = this;
    const fileName = `${place.name}-node${place.node + 1}`;
    const configuration = causewayConfiguration({
      globalHost: options.globalHost,
      localHost: place.localHost,
      nodeName: `node${place.node + 1}@${place.localHost}`,
      ports: options.ports(place),
      components: options.components,
      certificate,
      cafile: this.caFile,
      database: this.database.sections(this.run.path(`${fileName}.sqlite`), databasePort),
      redis: redis.address,
      redisPlace: redis.place,
      replication: options.replication,
      hasArchives: options.archives,
      // one is enough: it tells where the others are
      seeds: options.links === "direct" && options.replication === "builtin"
        ? Object.values(this.#mesh.addresses(place.name))[0] ?? []
        : [],
      addresses: options.links === "direct" ? {} : Object.fromEntries(
        Object.entries(this.#mesh.addresses(place.name))
          .map(([name, targets]) => [`${name}.${options.globalHost}`, targets]),
      ),
    });
    options.configure?.(configuration, place);
    return new NodeProcess({
      name: fileName,
      run: this.run,
      configuration,
      readyWithinMs: options.readyWithinMs,
      ...(options.env && { env: options.env(place) }),
      ...(options.command && { command: options.command }),
      started: (ready) => this.#mesh.setTarget(place.name, place.node, ready.links[0]),
    });
  }

  #nodes(): readonly CausewayNode[] {
    return this.#datacenters.flatMap((datacenter) => datacenter.nodes);
  }

  #others(name: string): readonly string[] {
    return this.#datacenters.map((each) => each.name).filter((other) => other !== name);
  }
}

/**
 * Starts a cluster, runs `body` on it and ends it. When `body` throws, the cluster's directory is
 * kept, and named on standard error. When the options' signal comes, it does not wait for `body`.
 */
export async function withCluster<T>(
  options: ClusterOptions,
  body: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  await using cluster = await Cluster.start(options);
  const { signal } = options;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  try {
    signal?.throwIfAborted();
    return await Promise.race([body(cluster), aborted]);
  } catch (thrown) {
    if (!signal?.aborted) {
      await cluster.keep();
      console.error(`The files of the failed run are in ${cluster.run.directory}`);
    }
    throw thrown;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

function datacenterNames(options: ResolvedClusterOptions): readonly string[] {
  return Array.from({ length: options.datacenters }, (_, index) => `dc${index + 1}`);
}
