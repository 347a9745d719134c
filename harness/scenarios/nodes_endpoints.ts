import assert from "node:assert/strict";
import type { Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";
import { expectChat, pairs, TWO_NODES, untilChat } from "./_two_nodes.ts";

/** A node that nobody outside its datacenter can dial. */
export const NODES_WITHOUT_ENDPOINT: Scenario = {
  name: "nodes-without-endpoint",
  summary: "a node without endpoints is reached through its datacenter's other node",
  options: {
    ...TWO_NODES,
    configure(configuration, place) {
      TWO_NODES.configure!(configuration, place);
      if (place.datacenter !== 0 || place.node !== 1) return;
      configuration.modules.mod_global_distrib.connections.endpoints = [];
    },
  },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const { nodes } = cluster.datacenter("dc1");
    assert.deepEqual(nodes.map((node) => node.ready.links.length), [1, 0]);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc1", { node: 1 });
    const carol = await stage.enterAvailable("carol", "dc2");
    for (const [from, to] of pairs([alice, bob, carol])) await untilChat(cluster, from, to);
    for (const [from, to] of pairs([alice, bob, carol])) await expectChat(from, to);
    say(
      "bob's node accepts no links from outside dc1: carol at dc2 reaches him, and he reaches her",
    );
    for (const [from, to] of pairs([alice, bob, carol])) await to.expectNothingElse(from);
  },
};

/** A datacenter that accepts no links from outside. */
export const NODES_ALONE: Scenario = {
  name: "nodes-alone",
  summary: "the nodes of a datacenter without any endpoint reach each other",
  options: {
    ...TWO_NODES,
    datacenters: 1,
    nodes: 3,
    configure(configuration, place) {
      TWO_NODES.configure!(configuration, place);
      configuration.modules.mod_global_distrib.connections.endpoints = [];
    },
  },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const clients = [
      await stage.enterAvailable("alice", "dc1"),
      await stage.enterAvailable("bob", "dc1", { node: 1 }),
      await stage.enterAvailable("carol", "dc1", { node: 2 }),
    ];
    for (const [from, to] of pairs(clients)) await expectChat(from, to);
    for (const [from, to] of pairs(clients)) await to.expectNothingElse(from);
    say("three nodes without endpoints: each reaches each, and nothing else arrived");
  },
};
