import assert from "node:assert/strict";
import { type Cluster, withCluster } from "../cluster/mod.ts";
import { Run } from "../process/mod.ts";
import { bare, Stage } from "../scenarios/_stage.ts";
import { type CollectedSpan, OtlpCollector } from "./otlp_collector.ts";

Deno.test("a collector gets one trace of a stanza over two datacenters, metrics and logs", async () => {
  await using run = await Run.start();
  await using collector = await OtlpCollector.start(run);
  await withCluster({
    datacenters: 2,
    configure: (configuration, { datacenter }) => {
      configuration.observe = {
        otlp: {
          endpoint: collector.endpoint,
          headers: { "x-tenant": "causeway" },
          // dc2 traces nothing of its own accord.
          sample_ratio: datacenter === 0 ? 1 : 0,
          batch_interval: 0.1,
          metrics_interval: 1,
          resource: { "deployment.environment.name": "test" },
        },
      };
    },
  }, async (cluster) => {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    const secret = crypto.randomUUID();
    await alice.sendMessage(bob.jid, secret);
    await bob.expectMessage(secret);
    await checkTrace(cluster, collector);
    const nobody = `nobody@${cluster.globalHost}`;
    await alice.expectError(await alice.sendMessage(nobody, secret), "service-unavailable");
    await checkBounce(cluster, collector);
    await bob.sendMessage(alice.jid, "not traced where it enters");
    await alice.expectMessage("not traced where it enters");
    await checkOtherSignals(cluster, collector);
    const text = await collector.text();
    for (const hidden of [secret, bare(alice.jid), bare(bob.jid)]) {
      assert.ok(!text.includes(hidden), `the collector was told ${hidden}`);
    }
  });
});

async function messages(collector: OtlpCollector): Promise<readonly CollectedSpan[]> {
  return (await collector.spans()).filter(({ name }) => name.endsWith(" message"));
}

/** dc1 begins the trace, and dc2 goes on with it. */
async function checkTrace(cluster: Cluster, collector: OtlpCollector): Promise<void> {
  const { taken, sent } = await cluster.until(async () => {
    const spans = await messages(collector);
    const taken = spans.find(({ node }) => node === "node1@dc2.example.com");
    const sent = spans.find(({ spanId }) => spanId === taken?.parentId);
    // The collector may still be printing.
    const isWhole = hasSteps(sent, ["accepted", "looked-up", "queued", "written"]) &&
      hasSteps(taken, ["arrived", "delivered"]);
    return isWhole ? { taken: taken!, sent: sent! } : undefined;
  }, { what: "the collector has a span of the message from dc2, and its parent" });
  assert.equal(sent.node, "node1@dc1.example.com");
  assert.equal(sent.name, "send message");
  assert.equal(sent.kind, "SPAN_KIND_PRODUCER");
  assert.equal(sent.parentId, "");
  assert.equal(sent.attributes["xmpp.to"], "example.com");
  assert.equal(taken.name, "process message");
  assert.equal(taken.kind, "SPAN_KIND_CONSUMER");
  assert.equal(taken.traceId, sent.traceId);
  assert.equal(taken.attributes["messaging.message.id"], sent.attributes["messaging.message.id"]);
}

function hasSteps(span: CollectedSpan | undefined, steps: readonly string[]): boolean {
  return span !== undefined && steps.every((step) => span.events.includes(step));
}

/** The span of a message that finds nobody says so, and the error that answers it is its child. */
async function checkBounce(cluster: Cluster, collector: OtlpCollector): Promise<void> {
  const failed = await cluster.until(
    async () =>
      (await messages(collector)).find((span) =>
        span.status === "STATUS_CODE_ERROR" && hasSteps(span, ["held", "answered"])
      ),
    { what: "the collector has the span of the message that came back" },
  );
  assert.equal(failed.statusMessage, "answered: service-unavailable");
  const answer = await cluster.until(
    async () =>
      (await messages(collector)).find((span) =>
        span.parentId === failed.spanId && hasSteps(span, ["delivered"])
      ),
    { what: "the collector has the span of the error" },
  );
  assert.equal(answer.traceId, failed.traceId);
  assert.equal(answer.attributes["xmpp.stanza.type"], "error");
}

async function checkOtherSignals(cluster: Cluster, collector: OtlpCollector): Promise<void> {
  for (
    const [what, shown] of [
      ["a counter of both nodes", /mod_global_distrib_outgoing_messages_total/],
      ["a histogram", /mod_global_distrib_incoming_transfer_time_seconds/],
      ["an event of the log", /link\.opened/],
      ["an attribute of the process", /deployment\.environment\.name: Str\(test\)/],
    ] as const
  ) {
    await cluster.until(async () => shown.test(await collector.text()), {
      what: `the collector has ${what}`,
    });
  }
}
