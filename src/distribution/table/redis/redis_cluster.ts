import { setTimeout as pause } from "node:timers/promises";
import calculateSlot from "cluster-key-slot";
import { describeError } from "../../../base/mod.ts";
import type { HostPort, RedisOptions } from "../options.ts";
import { downError } from "./redis_batch.ts";
import type { RedisCommand, RedisCommands, RedisEvents, RedisReply } from "./redis_commands.ts";
import { RedisErrorReply } from "./redis_commands.ts";
import type { ConnectionDeps } from "./redis_connection.ts";
import { connectionDeps, RedisConnection, withConnection } from "./redis_connection.ts";
import type { Redirect, SlotMap } from "./slot_map.ts";
import { nodeName, parseSlotMap, tryParseRedirect } from "./slot_map.ts";

/** Times that one command is sent on, or again, before it is given up. */
const MAX_REDIRECTS = 16;
/** Wait before a command that a node could not answer in the middle of a move is sent again. */
const LATER_MS = 50;

/** The connection to one node of the cluster. */
interface ClusterNode {
  readonly at: HostPort;
  readonly connection: RedisConnection;
  /** Settles when all that was sent there so far has been answered. */
  answered: Promise<unknown>;
}

/** A command that waits for its turn, because its slot is on the move. */
interface HeldCommand {
  /** Place in the order of the calls. */
  readonly number: number;
  readonly command: RedisCommand;
  /** Redirect that a node has already answered it with. */
  readonly redirect: Redirect | undefined;
  resolve(reply: RedisReply): void;
  reject(error: unknown): void;
}

/** Some of the commands of one call, all for one node. */
interface Part {
  readonly at: number[];
  readonly commands: RedisCommand[];
}

/**
 * A Redis Cluster: one connection to each of its masters, each command to the master of its key.
 *
 * It counts as connected while every slot has a master that is connected. When one is lost, any
 * node that answers is asked for the map of slots, again and again, until that is so. ioredis' own
 * cluster would queue commands meanwhile, and make a promise for each.
 *
 * A slot may move while all nodes live. Its commands then wait until the old master has answered
 * all earlier ones. They go one by one, in the order of the calls, to the nodes that the redirects
 * name.
 */
export class RedisClusterCommands implements RedisCommands {
  readonly #deps: ConnectionDeps;
  /** Nodes with a connection, or an attempt at one. */
  readonly #nodes = new Map<string, ClusterNode>();
  /** Master of each slot; empty until the map is known. */
  #owners: readonly ClusterNode[] = [];
  #masters: ReadonlySet<ClusterNode> = new Set();
  /** Nodes that can be asked for the map, besides the seeds. */
  #known: readonly HostPort[] = [];
  readonly #held = new Map<number, HeldCommand[]>();
  readonly #leaving = new Set<Promise<void>>();
  #events: RedisEvents | undefined;
  #isUp = false;
  /**
   * True when a master was lost since the cluster was up last: a replica may have taken its place.
   */
  #mayHaveLost = false;
  #refusal: string | undefined;
  #learning: Promise<void> | undefined;
  /** True when the map was found to be wrong after it was asked for. */
  #isOutdated = false;
  #failures = 0;
  #learnTimer: ReturnType<typeof setTimeout> | undefined;
  #calls = 0;

  /** @throws CausewayError `table/redis-tls` for a file that cannot be used */
  constructor(options: Required<RedisOptions>) {
    this.#deps = connectionDeps(options);
  }

  get refusal(): string | undefined {
    return this.#refusal;
  }

  connect(events: RedisEvents): void {
    this.#events = events;
    this.#learn();
  }

  async run(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    if (commands.length === 0) return [];
    if (!this.#isUp) throw downError("not all of the cluster is connected");
    const replies: RedisReply[] = new Array(commands.length).fill(null);
    const parts = new Map<ClusterNode, Part>();
    const answers: Promise<unknown>[] = [];
    const firstNumber = this.#calls;
    this.#calls += commands.length;
    for (const [i, command] of commands.entries()) {
      const slot = calculateSlot(command[1]);
      if (this.#held.has(slot)) {
        const reply = this.#hold(slot, firstNumber + i, command);
        answers.push(reply.then((value) => replies[i] = value));
        continue;
      }
      const owner = this.#owners[slot]!; // there is one for each slot while the cluster is up
      const part = parts.get(owner) ?? { at: [], commands: [] };
      if (part.at.length === 0) parts.set(owner, part);
      part.at.push(i);
      part.commands.push(command);
    }
    for (const [node, part] of parts) {
      const taken = this.#send(node, part, firstNumber, replies);
      answers.push(taken.then((redirected) => Promise.all(redirected)));
    }
    await Promise.all(answers);
    return replies;
  }

  async close(): Promise<void> {
    this.#events = undefined;
    this.#isUp = false;
    clearTimeout(this.#learnTimer);
    const nodes = [...this.#nodes.values()];
    this.#nodes.clear();
    await Promise.all(nodes.map(({ connection }) => connection.close()));
    await Promise.all(this.#leaving);
    await this.#learning;
  }

  /**
   * Sends `commands` to `node`. Resolves once it has replied to all, with the replies that other
   * nodes have to give.
   */
  #send(
    node: ClusterNode,
    { at, commands }: Part,
    firstNumber: number,
    replies: RedisReply[],
  ): Promise<readonly Promise<unknown>[]> {
    const taken = node.connection.run(commands).then((answers) => {
      const redirected: Promise<unknown>[] = [];
      answers.forEach((answer, k) => {
        const i = at[k]!;
        const redirect = redirectIn(answer, node.at);
        if (redirect === undefined) replies[i] = answer;
        else {
          if (redirect.kind === "moved") this.#mapIsOutdated();
          const command = commands[k]!;
          const slot = calculateSlot(command[1]);
          this.#beginHold(slot, node);
          const reply = this.#hold(slot, firstNumber + i, command, redirect);
          redirected.push(reply.then((value) => replies[i] = value));
        }
      });
      return redirected;
    });
    node.answered = taken.catch(() => {}); // the caller gets the error
    return taken;
  }

  // ---- slots that move ---------------------------------------------------------------------

  /**
   * Makes the commands of `slot` wait from now on, until `node` has answered those on their way to
   * it.
   */
  #beginHold(slot: number, node: ClusterNode): void {
    if (this.#held.has(slot)) return;
    this.#held.set(slot, []);
    void this.#drain(slot, node.answered); // never rejects
  }

  #hold(
    slot: number,
    number: number,
    command: RedisCommand,
    redirect?: Redirect,
  ): Promise<RedisReply> {
    const { promise, resolve, reject } = Promise.withResolvers<RedisReply>();
    const queue = this.#held.get(slot)!; // the caller has looked, or has begun it
    // A command that was redirected is older than those that have begun to wait since.
    const before = queue.findIndex((other) => other.number > number);
    const held = { number, command, redirect, resolve, reject };
    queue.splice(before < 0 ? queue.length : before, 0, held);
    return promise;
  }

  async #drain(slot: number, answered: Promise<unknown>): Promise<void> {
    await answered;
    const queue = this.#held.get(slot)!; // taken out below alone
    for (let held = queue.shift(); held !== undefined; held = queue.shift()) {
      try {
        held.resolve(await this.#carry(slot, held.command, held.redirect));
      } catch (error) {
        held.reject(error);
      }
    }
    this.#held.delete(slot);
  }

  /** Sends one command, and follows the redirects of the nodes. */
  async #carry(
    slot: number,
    command: RedisCommand,
    redirect: Redirect | undefined,
  ): Promise<RedisReply> {
    let next = redirect;
    for (let tries = 0; tries < MAX_REDIRECTS; tries++) {
      if (next?.kind === "later") await pause(LATER_MS);
      const node = next?.to === undefined ? this.#owners[slot] : this.#node(next.to);
      if (node === undefined || !this.#isUp) throw downError("not all of the cluster is connected");
      await node.connection.whenReady();
      if (next?.kind === "ask") node.connection.asking();
      const [reply] = await node.connection.run([command]);
      next = redirectIn(reply!, node.at);
      if (next === undefined) return reply!;
      if (next.kind === "moved") this.#mapIsOutdated();
    }
    throw downError(`the cluster has sent ${command[0]} from node to node ${MAX_REDIRECTS} times`);
  }

  // ---- the map of slots --------------------------------------------------------------------

  #mapIsOutdated(): void {
    this.#isOutdated = true;
    this.#learn();
  }

  /** Asks for the map now, and again until it is right and every master is connected. */
  #learn(): void {
    if (this.#learning !== undefined || this.#events === undefined) return;
    clearTimeout(this.#learnTimer);
    this.#isOutdated = false;
    this.#learning = this.#learnOnce().finally(() => {
      this.#learning = undefined;
      if (this.#events === undefined) return;
      if (this.#isOutdated) return this.#learn();
      if (this.#isUp) return;
      this.#learnTimer = setTimeout(() => this.#learn(), this.#delayMs());
    });
  }

  async #learnOnce(): Promise<void> {
    let reason = "no node of the cluster was asked";
    for (const at of this.#whomToAsk()) {
      if (this.#events === undefined) return;
      try {
        this.#apply(await this.#askForMap(at));
        return;
      } catch (error) {
        reason = `${nodeName(at)}: ${describeError(error)}`;
        if (/^(WRONGPASS|NOAUTH|ERR invalid password)/.test(describeError(error))) {
          this.#refusal = reason;
        }
      }
    }
    if (!this.#isUp) this.#events?.disconnected(reason);
  }

  /**
   * Returns the nodes to ask for the map: connected ones first, in random order, since any of them
   * may be behind.
   */
  #whomToAsk(): readonly HostPort[] {
    const all = [...this.#known, ...this.#deps.options.cluster];
    const distinct = [...new Map(all.map((at) => [nodeName(at), at])).values()];
    const rank = new Map(
      distinct.map((at) => [at, (this.#isConnected(at) ? 0 : 1) + Math.random()]),
    );
    return distinct.toSorted((one, other) => rank.get(one)! - rank.get(other)!);
  }

  #isConnected(at: HostPort): boolean {
    return this.#nodes.get(nodeName(at))?.connection.isReady ?? false;
  }

  async #askForMap(at: HostPort): Promise<SlotMap> {
    const reply = this.#isConnected(at)
      ? await this.#nodes.get(nodeName(at))!.connection.redis.cluster("SLOTS")
      : await withConnection(this.#deps, at, (redis) => redis.cluster("SLOTS"));
    return parseSlotMap(reply, at);
  }

  #apply({ masters, nodes }: SlotMap): void {
    if (this.#events === undefined) return;
    this.#known = [...nodes.values()];
    const owners = masters.map((name) => this.#node(nodes.get(name)!));
    const current = new Set(owners);
    for (const [slot, owner] of owners.entries()) {
      const before = this.#owners[slot];
      if (before !== undefined && before !== owner) this.#beginHold(slot, before);
    }
    this.#owners = owners;
    this.#masters = current;
    for (const [name, node] of this.#nodes) {
      if (current.has(node)) continue;
      this.#nodes.delete(name);
      const left = node.answered.then(() => node.connection.close());
      this.#leaving.add(left);
      left.finally(() => this.#leaving.delete(left));
    }
    this.#found();
  }

  #node(at: HostPort): ClusterNode {
    const name = nodeName(at);
    const existing = this.#nodes.get(name);
    if (existing !== undefined) return existing;
    const isMine = () => this.#nodes.get(name) === node;
    const connection = new RedisConnection(this.#deps, {
      ready: () => this.#found(),
      lost: (reason) => {
        if (isMine() && this.#masters.has(node)) this.#lost(`${name}: ${reason}`);
      },
      left: () => {}, // a replica in a cluster answers MOVED
    }, at);
    const node: ClusterNode = { at, connection, answered: Promise.resolve() };
    this.#nodes.set(name, node);
    return node;
  }

  // ---- up and down -------------------------------------------------------------------------

  #found(): void {
    if (this.#isUp || this.#masters.size === 0) return;
    for (const { connection } of this.#masters) if (!connection.isReady) return;
    this.#isUp = true;
    this.#failures = 0;
    this.#refusal = undefined;
    const mayHaveLost = this.#mayHaveLost;
    this.#mayHaveLost = false;
    this.#events?.connected(mayHaveLost);
  }

  #lost(reason: string): void {
    const wasUp = this.#isUp;
    if (wasUp) this.#mayHaveLost = true;
    this.#isUp = false;
    for (const { connection } of this.#nodes.values()) this.#refusal ??= connection.refusal;
    this.#events?.disconnected(reason);
    if (wasUp) this.#learn(); // else it is under way
  }

  #delayMs(): number {
    const { reconnectMaxMs } = this.#deps.options;
    const delayMs = Math.min(reconnectMaxMs, 50 * 2 ** Math.min(this.#failures++, 16));
    return delayMs * (0.9 + Math.random() / 5);
  }
}

function redirectIn(reply: RedisReply, from: HostPort): Redirect | undefined {
  return reply instanceof RedisErrorReply ? tryParseRedirect(reply.message, from) : undefined;
}
