import assert from "node:assert/strict";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { bare, Stage } from "./_stage.ts";

/** A step, as `docs/operations.md` shows it to people. */
interface Step {
  readonly node: string;
  readonly stanza: string;
  readonly from: string;
  readonly to: string;
  readonly step: string;
  readonly place?: string;
  readonly number?: number;
  readonly reason?: string;
}

/** A trace as an operator's program reads it. */
class Following implements AsyncDisposable {
  readonly steps: Step[] = [];
  /** State at each other node. */
  readonly states = new Map<string, string>();
  text = "";
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;

  constructor(datacenter: Datacenter, address: string) {
    const url = datacenter.adminUrl(`/api/v1/trace/${encodeURIComponent(address)}?for=300`);
    this.#done = this.#read(url).catch((thrown) => {
      if (!this.#abort.signal.aborted) throw thrown;
    });
  }

  async #read(url: URL): Promise<void> {
    const response = await fetch(url, { signal: this.#abort.signal });
    assert.equal(response.status, 200);
    let rest = "";
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      this.text += chunk;
      const events = (rest + chunk).split("\n\n");
      rest = events.pop()!;
      for (const event of events) this.#take(event);
    }
  }

  #take(event: string): void {
    const [, name, data] = /^event: (\S+)\ndata: (.*)$/.exec(event)!;
    const told = JSON.parse(data!);
    if (name === "step") this.steps.push(told);
    if (name === "node") this.states.set(told.node, told.state);
  }

  /** Steps of one stanza at one node, as the names of the steps. */
  at(node: string, stanza: string): readonly string[] {
    return this.steps.filter((each) => each.node === node && each.stanza === stanza)
      .map(({ step }) => step);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }
}

/** An operator follows one address through all datacenters. */
export const TRACED_ADDRESS: Scenario = {
  name: "traced-address",
  summary: "an operator of one datacenter sees every step of a person's stanzas in all of them",
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    const carol = await stage.enterAvailable("carol", "dc3");
    const [dc1, dc2, dc3] = ["dc1", "dc2", "dc3"].map((name) => cluster.datacenter(name));
    const [here, there] = [nodeOf(dc1!), nodeOf(dc2!)];
    {
      await using following = new Following(dc1!, bare(alice.jid));
      const others = [there, nodeOf(dc3!)];
      await cluster.until(
        () => others.every((node) => following.states.get(node) === "watching"),
        { what: "the nodes of dc2 and dc3 trace alice" },
      );
      say("dc1 is asked to trace alice, and dc2 and dc3 trace her too");

      const secret = crypto.randomUUID();
      await carol.sendMessage(bob.jid, "not about alice");
      await bob.expectMessage("not about alice");
      await alice.sendMessage(bob.jid, secret);
      await bob.expectMessage(secret);
      const sent = await untilStep(cluster, following, { from: alice.jid, to: bob.jid });
      const way = () => [following.at(here, sent), following.at(there, sent)];
      await cluster.until(() => way().every((steps) => steps.includes("settled")), {
        what: "the message is settled at both nodes",
      });
      const [ofDc1, ofDc2] = way();
      assertOrder(ofDc1!, ["accepted", "looked-up", "queued", "written", "settled"]);
      assertOrder(ofDc2!, ["arrived", "delivered", "settled"]);
      const step = (node: string, name: string) =>
        following.steps.find((each) =>
          each.node === node && each.stanza === sent && each.step === name
        )!;
      assert.equal(step(here, "looked-up").place, dc2!.localHost);
      assert.equal(step(here, "queued").place, dc2!.localHost);
      assert.equal(step(there, "arrived").place, dc1!.localHost);
      assert.equal(step(here, "queued").number, step(there, "arrived").number);
      say("the trace shows the message to bob at dc1 and at dc2, with one number");

      const nobody = `nobody@${cluster.globalHost}`;
      const lost = await alice.sendMessage(nobody, secret);
      await alice.expectError(lost, "service-unavailable");
      const bounced = await untilStep(cluster, following, { from: alice.jid, to: nobody });
      // The error may come before the trace tells of it.
      await cluster.until(() => following.at(here, bounced).includes("answered"), {
        what: "the trace tells that the message came back",
      });
      assertOrder(following.at(here, bounced), ["accepted", "looked-up", "held", "answered"]);
      const answer = await untilStep(cluster, following, { from: nobody, to: alice.jid });
      await cluster.until(() => following.at(here, answer).includes("delivered"), {
        what: "the error is delivered",
      });
      say("it shows why a message comes back");

      assert.ok(!following.text.includes(secret), "the trace shows what alice has written");
      assert.ok(following.steps.every(isAbout(bare(alice.jid))));
    }
    for (const datacenter of [dc1!, dc2!, dc3!]) {
      await cluster.until(async () => await tracesAt(datacenter) === 0, {
        what: `${datacenter.localHost} traces nobody any more`,
      });
    }
    const audit = await (await fetch(dc1!.adminUrl("/api/v1/audit"))).json();
    const entries = audit.items.filter((each: { readonly action: string }) =>
      each.action === "trace"
    );
    assert.deepEqual(entries.map((each: { readonly outcome: string }) => each.outcome), [
      "done",
      "started",
    ]);
    say("the trace ends everywhere when its reader leaves, and is in the audit log");
  },
};

function nodeOf({ localHost }: Datacenter): string {
  return `node1@${localHost}`;
}

function isAbout(account: string): (step: Step) => boolean {
  return ({ from, to }) => bare(from) === account || bare(to) === account;
}

/** Returns the id of the first stanza from and to these addresses, once it is seen. */
async function untilStep(
  cluster: Cluster,
  following: Following,
  { from, to }: Pick<Step, "from" | "to">,
): Promise<string> {
  const find = () => following.steps.find((each) => each.from === from && each.to === to)?.stanza;
  await cluster.until(() => find() !== undefined, { what: `a step from ${from} to ${to}` });
  return find()!;
}

function assertOrder(steps: readonly string[], wanted: readonly string[]): void {
  let at = 0;
  for (const step of steps) if (step === wanted[at]) at++;
  assert.equal(at, wanted.length, `${wanted.join(", ")} are not among ${steps.join(", ")}`);
}

/** Traces under way at the first node of a datacenter. */
async function tracesAt(datacenter: Datacenter): Promise<number> {
  const text = await (await fetch(datacenter.adminUrl("/metrics"))).text();
  return [...text.matchAll(/^causeway_traces\{.*\} (\d+)$/gm)]
    .reduce((sum, [, count]) => sum + Number(count), 0);
}
