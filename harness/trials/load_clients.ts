import type { Cluster, ClusterUser } from "../cluster/mod.ts";
import { type Ledger, PresenceAccount, RosterAccount } from "../ledger/mod.ts";
import { liveMs } from "../live_clock.ts";
import {
  CarbonReader,
  LoadClient,
  type LoadPlace,
  type NodeEnd,
  PresenceReader,
  RosterItems,
  RosterWriter,
  type Sideline,
  SideLoad,
} from "../load/mod.ts";
import { placesOf } from "./trial_stage.ts";

export const NODES = 2;
export const DATACENTERS = 3;

/** Two at each node: one with and one without stream management. */
export const LOAD_USERS = usersCalled("load", 2 * NODES * DATACENTERS);
/** Clients that bring no load. A trial may use them freely. */
export const GUESTS = usersCalled("guest", 4);

/** Resource of the clients that send numbered stanzas. */
const MAIN = "load";
/** Resource of their accounts' further devices. */
const DEVICE = "device";

/**
 * Clients with a further device, by their index among the users. Each datacenter has one of them,
 * and the device is at the next one. Neither belongs to a client that a trial makes deaf.
 */
const WITH_DEVICE: readonly { readonly user: number; readonly isManaged: boolean }[] = [
  { user: 0, isManaged: true },
  { user: 3, isManaged: false },
  { user: 10, isManaged: true },
];

/**
 * What the accounts of a load do beside sending numbered stanzas: nothing; change their rosters and
 * watch their contacts' presence; or that, and use a further device with carbons.
 */
export const SIDES = ["none", "contacts", "devices"] as const;
export type Side = typeof SIDES[number];

/** Circumstances of load clients. */
export interface LoadClientsOptions {
  /** Ends of nodes, by their names. @default none */
  readonly ends?: ReadonlyMap<string, NodeEnd>;
  /** @default LOAD_USERS */
  readonly users?: readonly ClusterUser[];
  /** Returns the sidelines of a client. @default none */
  readonly sidelinesOf?: (user: ClusterUser) => readonly Sideline[];
}

/** Two clients at each node; when it does not run, they go to the other one of its datacenter. */
export function loadClients(
  cluster: Cluster,
  ledger: Ledger,
  { ends = new Map(), users = LOAD_USERS, sidelinesOf = () => [] }: LoadClientsOptions = {},
): LoadClient[] {
  const places = placesOf(cluster);
  return users.map((user, index) =>
    new LoadClient({
      ...user,
      domain: cluster.globalHost,
      resource: MAIN,
      isManaged: index >= places.length,
      places: placesFrom(places, index),
      ledger,
      endOf: ({ name }) => ends.get(name),
      sidelines: sidelinesOf(user),
    })
  );
}

/**
 * The clients of a trial: those that send numbered stanzas, and what is beside these. The users are
 * one another's contacts.
 */
export function clientsWithSides(
  cluster: Cluster,
  ledger: Ledger,
  { ends, hasDevices }: {
    readonly ends: ReadonlyMap<string, NodeEnd>;
    readonly hasDevices: boolean;
  },
): { readonly clients: readonly LoadClient[]; readonly side: SideLoad } {
  const presence = new PresenceAccount(liveMs);
  const rosters = new RosterAccount(liveMs);
  const items = new Map(LOAD_USERS.map((user) => {
    const account = `${user.localpart}@${cluster.globalHost}`;
    for (const other of LOAD_USERS) {
      const contact = `${other.localpart}@${cluster.globalHost}`;
      if (other !== user) rosters.prepared(account, contact, "both");
    }
    return [user.localpart, new RosterItems(account)];
  }));
  const writers: [LoadClient, RosterWriter][] = [];
  const writersOf = (user: ClusterUser) => new RosterWriter(rosters, items.get(user.localpart)!);
  const places = placesOf(cluster);
  const mainWriters = new Map(LOAD_USERS.map((user) => [user, writersOf(user)]));
  const clients = loadClients(cluster, ledger, {
    ends,
    sidelinesOf: (user) => [new PresenceReader(presence), mainWriters.get(user)!],
  });
  for (const [index, client] of clients.entries()) {
    writers.push([client, mainWriters.get(LOAD_USERS[index]!)!]);
  }
  const devices = (hasDevices ? WITH_DEVICE : []).map(({ user: index, isManaged }) => {
    const user = LOAD_USERS[index]!;
    const writer = writersOf(user);
    const device = new LoadClient({
      ...user,
      domain: cluster.globalHost,
      resource: DEVICE,
      isRenamed: true,
      isManaged,
      places: placesFrom(places, index + NODES),
      ledger,
      endOf: ({ name }) => ends.get(name),
      sidelines: [new PresenceReader(presence), writer, new CarbonReader(ledger)],
    });
    ledger.addDevice(device.jid, clients[index]!.jid);
    writers.push([device, writer]);
    return device;
  });
  return { clients, side: new SideLoad({ devices, presence, rosters, writers }) };
}

/** The place of this index, and behind it the others of its datacenter. */
function placesFrom(places: readonly LoadPlace[], index: number): readonly LoadPlace[] {
  const home = places[index % places.length]!;
  const others = places.filter((place) =>
    place !== home && place.name.split("-")[0] === home.name.split("-")[0]
  );
  return [home, ...others];
}

function usersCalled(name: string, count: number): readonly ClusterUser[] {
  return Array.from({ length: count }, (_, index) => ({
    localpart: `${name}${index + 1}`,
    password: "secret",
  }));
}
