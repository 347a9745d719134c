import type { ClusterView, LinkView, NodeView } from "../cluster_view.ts";

const NODE: NodeView = {
  name: "dc1-node1",
  datacenter: "dc1",
  state: "ready",
  sessions: 2,
  sentPerSec: 3.25,
  receivedPerSec: 4,
  held: 5,
  waiting: 6,
  redis: "up",
  dashboard: "http://127.0.0.1:8088/",
};

const LINK: LinkView = {
  one: "dc1",
  other: "dc2",
  state: "up",
  roundTripMs: 1.53,
  sentPerSec: [1, 2],
  held: [3, 4],
};

/** Three datacenters, of which one has ended, and a cut link. */
export const SAMPLE: ClusterView = {
  globalHost: "example.com",
  nodes: [
    NODE,
    { ...NODE, name: "dc2-node1", datacenter: "dc2", dashboard: "http://127.0.0.1:8089/" },
    {
      ...NODE,
      name: "dc3-node1",
      datacenter: "dc3",
      state: "stopped",
      sessions: 0,
      redis: "down",
      dashboard: undefined,
    },
  ],
  links: [
    LINK,
    { ...LINK, other: "dc3", state: "cut", roundTripMs: undefined },
    { ...LINK, one: "dc2", other: "dc3", state: "down" },
  ],
  traffic: {
    state: "on",
    visitors: [
      { name: "visitor1", place: "dc1-node1", isOnline: true },
      { name: "visitor2", place: "dc3-node1", isOnline: false },
    ],
  },
};
