import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import { Cluster } from "../cluster/mod.ts";
import {
  DIRECTORY_BASE,
  DIRECTORY_READER,
  DirectoryServer,
  groupLdif,
  personLdif,
} from "../databases/mod.ts";
import { accountOf, askForRoster, expectMark, expectPresence, logInFully } from "./_contacts.ts";
import { logIn } from "./_log_in.ts";
import { Stage } from "./_stage.ts";

const USERS = [
  { localpart: "alice", password: "wonder land" },
  { localpart: "bob", password: "builder" },
];

const LDIF = [
  personLdif({ uid: "alice", password: "wonder land", attributes: { cn: "Alice M." } }),
  personLdif({
    uid: "bob",
    password: "builder",
    attributes: { cn: "Bob B.", mail: "bob@example.net", l: "Ulm" },
  }),
  groupLdif("dev", "Developers", ["alice", "bob"]),
].join("");

function configurationOf(port: number) {
  const connection = {
    servers: ["127.0.0.1"],
    port,
    rootdn: DIRECTORY_READER.dn,
    password: DIRECTORY_READER.password,
    connect_interval: 100,
    query_timeout: 20_000,
  };
  return {
    auth: { backend: "ldap", ldap: { base: `ou=people,${DIRECTORY_BASE}` } },
    outgoing_pools: { ldap: { default: { workers: 2, connection } } },
    modules: {
      mod_vcard: { backend: "ldap" },
      mod_shared_roster_ldap: {
        base: DIRECTORY_BASE,
        groupdesc: "description",
        useruid: "uid",
        gfilter: "(&(objectClass=posixGroup)(cn=%g))",
      },
    },
  };
}

function ask(client: ChatClient, to: string, payload: string, type: "get" | "set" = "get") {
  return client.iq({ type, payload, ...(to === "" ? {} : { to }) });
}

Deno.test("people of a directory log in at two datacenters, and are contacts of one another", async () => {
  await using directory = await DirectoryServer.start({ ldif: LDIF });
  const { auth, outgoing_pools, modules } = configurationOf(directory.port);
  await using cluster = await Cluster.start({
    datacenters: 2,
    database: "internal",
    users: USERS,
    addUsers: () => Promise.resolve(), // they are in the directory
    configure(configuration) {
      configuration.auth = auth;
      configuration.outgoing_pools = outgoing_pools;
      Object.assign(configuration.modules, modules);
    },
  });
  await using stage = new Stage(cluster);
  const [dc1, dc2] = cluster.datacenters;

  const alice = await logInFully(
    await stage.enter("alice", "dc1", { library: "slixmpp", resource: "phone" }),
  );
  const bob = await logInFully(
    await stage.enter("bob", "dc2", { library: "slixmpp", resource: "laptop" }),
  );
  await expectPresence(alice, bob.jid);
  await expectPresence(bob, alice.jid);

  const roster = await askForRoster(alice);
  assert.match(roster, /jid=["']bob@example\.com["']/);
  assert.match(roster, /name=["']Bob B\.["']/);
  assert.match(roster, /subscription=["']both["']/);
  assert.match(roster, /<group>Developers<\/group>/);
  assert.match(await askForRoster(bob), /jid=["']alice@example\.com["']/);

  const { xml } = await ask(alice, accountOf(bob), "<vCard xmlns='vcard-temp'/>");
  assert.match(xml, /<FN>Bob B\.<\/FN>/);
  assert.match(xml, /<USERID>bob@example\.net<\/USERID>/);
  assert.match(xml, /<LOCALITY>Ulm<\/LOCALITY>/);

  await expectMark(bob, alice);

  // The directory alone changes what is in it.
  for (
    const payload of [
      "<query xmlns='jabber:iq:roster'><item jid='bob@example.com' subscription='remove'/></query>",
      "<vCard xmlns='vcard-temp'><FN>Me</FN></vCard>",
      "<query xmlns='jabber:iq:register'><username>alice</username><password>new secret</password></query>",
    ]
  ) {
    const to = payload.includes("register") ? cluster.globalHost : "";
    const { type, xml } = await ask(alice, to, payload, "set");
    assert.equal(type, "error", payload);
    assert.match(xml, /<not-allowed/, payload);
  }

  for (const at of [dc1!, dc2!]) {
    assert.equal(await logIn(at, "alice", "wrong"), "not-authorized");
    assert.equal(await logIn(at, "nobody", "wonder land"), "not-authorized");
    assert.equal(await logIn(at, "*", "wonder land"), "not-authorized");
  }

  await directory.kill();
  assert.equal(await logIn(dc1!, "alice", "wonder land"), "temporary-auth-failure");
  await expectMark(bob, alice);
  await directory.launch();
  await cluster.until(async () => await logIn(dc1!, "alice", "wonder land") === "in", {
    what: "alice logs in again",
  });
});
