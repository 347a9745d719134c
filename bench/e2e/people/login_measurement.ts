import { addAccounts, PASSWORD } from "./accounts.ts";
import type { PeopleCluster, RoundTrips } from "./people_cluster.ts";
import { PersonClient } from "./person_client.ts";

/** Round trips of one login, in three parts. */
export interface LoginRoundTrips {
  /** Until the resource is bound: credentials, privacy lists, the session table. */
  readonly toBind: RoundTrips;
  /** From there until the presence of all contacts has come. */
  readonly toPresence: RoundTrips;
  /** Round trips that follow: last items, replication. */
  readonly afterwards: RoundTrips;
}

/** One login. */
export interface LoginSample {
  /** Milliseconds from the connection until the resource was bound. */
  readonly bindMs: number;
  /** Milliseconds from there until the presence of all contacts who are online has come. */
  readonly presenceMs: number;
  readonly roundTrips: LoginRoundTrips;
  /** Round trips of the nodes in the second before, when nobody logged in. */
  readonly idle: RoundTrips;
}

/** Logins of people with many contacts. */
export interface LoginFigures {
  readonly contacts: number;
  readonly online: number;
  readonly samples: readonly LoginSample[];
}

const CONTACTS = 500;
const ONLINE = 50;
/** Logins that are measured, for each run of the bench. */
const LOGINS_PER_RUN = 4;
/** Logins before those that are measured: the code is compiled and the capabilities are known. */
const WARM_UP = 5;
/** Nothing of a login is left to be done after so many milliseconds. */
const QUIET_MS = 1_000;

/** Logs people in at dc1, one after another. Half of their contacts are at dc2. */
export async function measureLogin(
  { cluster, place, roundTrips }: PeopleCluster,
  { runs }: { readonly runs: number },
  progress: (text: string) => void,
): Promise<LoginFigures> {
  const domain = cluster.globalHost;
  const people = Array.from(
    { length: WARM_UP + LOGINS_PER_RUN * runs },
    (_, index) => `person${index}`,
  );
  const contacts = Array.from({ length: CONTACTS }, (_, index) => `contact${index}`);
  await addAccounts([
    ...people.map((localpart) => ({ localpart, contacts })),
    ...contacts.map((localpart) => ({ localpart, contacts: people })),
  ], { domain, place, file: cluster.run.path("login.sqlite") });
  const addresses = cluster.datacenters.map((datacenter) => datacenter.clientAddress("none"));
  const login = (localpart: string, datacenter: number) =>
    PersonClient.login({
      ...addresses[datacenter]!,
      domain,
      localpart,
      password: PASSWORD,
      resource: "bench",
    });
  await using online = new AsyncDisposableStack();
  for (const [index, contact] of contacts.slice(0, ONLINE).entries()) {
    await online.use(await login(contact, index % addresses.length)).appear();
  }
  progress(`login: ${ONLINE} contacts are online`);
  const samples: LoginSample[] = [];
  for (const [index, person] of people.entries()) {
    await sleep(QUIET_MS);
    const quiet = roundTrips();
    await sleep(1_000);
    const start = roundTrips();
    const startMs = performance.now();
    await using client = await login(person, 0);
    const bound = roundTrips();
    const boundMs = performance.now();
    await client.appear();
    await client.meet(ONLINE);
    const present = roundTrips();
    const presentMs = performance.now();
    await sleep(QUIET_MS);
    const end = roundTrips();
    await client.leave();
    if (index < WARM_UP) continue;
    samples.push({
      bindMs: boundMs - startMs,
      presenceMs: presentMs - boundMs,
      roundTrips: {
        toBind: difference(start, bound),
        toPresence: difference(bound, present),
        afterwards: difference(present, end),
      },
      idle: difference(quiet, start),
    });
  }
  return { contacts: CONTACTS, online: ONLINE, samples };
}

function difference(before: RoundTrips, after: RoundTrips): RoundTrips {
  return {
    database: after.database - before.database,
    redis: after.redis - before.redis,
    otherRedis: after.otherRedis - before.otherRedis,
  };
}

function sleep(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}
