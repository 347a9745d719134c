import assert from "node:assert/strict";
import type { Scenario } from "../scenario.ts";
import {
  accountOf,
  askForRoster,
  expectMark,
  expectPresence,
  expectPush,
  logInFully,
  presencesFrom,
} from "./_contacts.ts";
import { becomeAvailable, Stage } from "./_stage.ts";
import { TWO_NODES } from "./_two_nodes.ts";

/** Rosters, subscriptions and presence over two datacenters (RFC 6121 §2 to §4). */
export const CONTACTS: Scenario = {
  name: "contacts",
  summary: "people add each other, see each other come and go, and part, over two datacenters",
  options: { ...TWO_NODES, database: "postgresql" },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const phone = await logInFully(await stage.enter("alice", "dc1", { resource: "phone" }));
    const laptop = await logInFully(
      await stage.enter("alice", "dc2", { resource: "laptop", library: "slixmpp", node: 1 }),
    );
    const [alice, bob] = [accountOf(phone), `bob@${cluster.globalHost}`];
    await stage.untilTableSaysOfSession(laptop, "dc2");
    say("alice's phone is at dc1, her laptop at dc2");

    await phone.iq({
      type: "set",
      payload: `<query xmlns='jabber:iq:roster'><item jid='${bob}' name='Bob'/></query>`,
    });
    await phone.presence({ to: bob, type: "subscribe" });
    for (const client of [phone, laptop]) {
      await expectPush(client, bob, { name: "Bob", subscription: "none" });
      await expectPush(client, bob, { ask: "subscribe" });
    }
    say("she adds bob, who is offline: both clients get the pushes");

    const first = await logInFully(await stage.enter("bob", "dc2", { resource: "first" }));
    await expectPresence(first, alice, "subscribe");
    await first.presence({ to: alice, type: "subscribed" });
    for (const client of [phone, laptop]) {
      await expectPush(client, bob, { subscription: "to" });
      await expectPresence(client, bob, "subscribed");
      await expectPresence(client, first.jid);
    }
    await expectPush(first, alice, { subscription: "from" });
    say("bob gets the request at his login, and accepts: both clients of alice see him");

    await first.presence({ to: alice, type: "subscribe" });
    await expectPresence(laptop, bob, "subscribe");
    await expectPresence(phone, bob, "subscribe");
    await laptop.presence({ to: bob, type: "subscribed" });
    for (const client of [phone, laptop]) await expectPush(client, bob, { subscription: "both" });
    for (const { jid } of [phone, laptop]) await expectPresence(first, jid);
    say("he asks back, she accepts at her laptop: he sees both of her clients");

    const second = await logInFully(
      await stage.enter("bob", "dc1", { resource: "second", node: 1 }),
    );
    for (const client of [phone, laptop, first]) await expectPresence(client, second.jid);
    for (const { jid } of [phone, laptop, first]) await expectPresence(second, jid);
    say("bob logs in at dc1 too: everybody sees everybody");

    await second.kill();
    for (const client of [phone, laptop, first]) {
      await expectPresence(client, second.jid, "unavailable");
    }
    await first.presence({ type: "unavailable" });
    for (const client of [phone, laptop]) {
      await expectPresence(client, first.jid, "unavailable");
      assert.deepEqual(presencesFrom(client, second.jid), [undefined, "unavailable"], "once");
    }
    await becomeAvailable(first);
    for (const client of [phone, laptop]) await expectPresence(client, first.jid);
    for (const { jid } of [phone, laptop]) await expectPresence(first, jid);
    say("a lost connection and a client's own end are seen in both datacenters, once");

    const carol = await logInFully(await stage.enter("carol", "dc1"));
    await carol.presence({ to: bob, type: "probe" });
    await carol.presence({ to: `nobody@${cluster.globalHost}`, type: "probe" });
    await carol.presence({ to: bob, type: "subscribed" });
    await expectPush(carol, bob, { approved: "true" });
    await expectMark(carol, first);
    await expectMark(first, carol);
    const heard = carol.received.filter(({ kind, from }) =>
      kind === "presence" && from !== carol.jid
    );
    assert.deepEqual(heard, []);
    assert.deepEqual(presencesFrom(first, carol.jid), []);
    say("carol, a stranger, learns nothing by a probe, and nobody learns of her");

    await carol.presence({ to: alice });
    for (const client of [phone, laptop]) await expectPresence(client, carol.jid);
    await carol.kill();
    for (const client of [phone, laptop]) {
      await expectPresence(client, carol.jid, "unavailable");
      assert.deepEqual(presencesFrom(client, carol.jid), [undefined, "unavailable"], "once");
    }
    say("she shows herself to alice alone: both clients of alice see her come and go");

    const roster = await askForRoster(laptop, "");
    const version = /ver=["'](\d+)["']/.exec(roster)?.[1];
    assert.ok(version !== undefined, roster);
    assert.match(roster, /subscription=["']both["']/);
    assert.doesNotMatch(await askForRoster(laptop, version), /<query/);
    say("a client that knows the version of its roster gets an empty answer");

    await phone.iq({
      type: "set",
      payload: `<query xmlns='jabber:iq:roster'><item jid='${bob}' subscription='remove'/></query>`,
    });
    for (const client of [phone, laptop]) {
      await expectPush(client, bob, { subscription: "remove" });
      await expectPresence(client, first.jid, "unavailable");
    }
    for (const { jid } of [phone, laptop]) await expectPresence(first, jid, "unavailable");
    await expectPresence(first, alice, "unsubscribed");
    await expectPresence(first, alice, "unsubscribe");
    await expectPush(first, alice, { subscription: "none" });
    say("alice removes bob: they no longer see each other");

    const before = first.received.length;
    await phone.presence({ priority: 3 });
    await expectPresence(laptop, phone.jid);
    await expectMark(phone, first);
    assert.deepEqual(
      first.received.slice(before).filter(({ kind }) => kind === "presence"),
      [],
    );
    say("her later presence does not reach him");
  },
};
