import { match, rejects, strictEqual } from "node:assert/strict";
import { DOMAIN, PASSWORD, TestServer } from "./testing/server.ts";
import { openStream, RawClient } from "./raw_client.ts";
import { RawSocket } from "./raw_socket.ts";

Deno.test("RawClient.login() logs in by every mechanism and is reached by others", async () => {
  await using server = await TestServer.start();
  const bob = { ...server.optionsFor("bob", "none"), resource: "b" };
  await using recipient = await RawClient.login(bob);
  for (const mechanism of ["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"] as const) {
    const alice = { ...server.optionsFor("alice", "none"), resource: mechanism, mechanism };
    const sender = await RawClient.login(alice);
    strictEqual(sender.jid, `alice@example.com/${mechanism}`);
    await sender.send(`<message to='${recipient.jid}'><body>${mechanism}</body></message>`);
    match(await recipient.socket.readUntil("</message>"), new RegExp(`<body>${mechanism}</body>`));
    await sender.logout();
  }
});

Deno.test("RawClient.login() upgrades with STARTTLS and speaks direct TLS", async () => {
  await using server = await TestServer.start();
  const tls = { caCerts: [server.caPem], serverName: DOMAIN };
  const upgraded = await RawClient.login({
    ...server.optionsFor("alice", "starttls"),
    starttls: tls,
  });
  await upgraded.logout();
  const direct = await RawClient.login({ ...server.optionsFor("alice", "direct"), tls });
  await direct.logout();
});

Deno.test("RawClient.login() says why it was not let in, and leaves no socket behind", async () => {
  await using server = await TestServer.start();
  for (const mechanism of ["PLAIN", "SCRAM-SHA-256"] as const) {
    const options = { ...server.optionsFor("alice", "none"), mechanism };
    await rejects(RawClient.login({ ...options, password: "wrong" }), /not-authorized/);
  }
});

Deno.test("RawClient sends bytes as they are", async () => {
  await using server = await TestServer.start();
  await using client = await RawClient.login({ ...server.optionsFor("alice", "none") });
  await client.send("<message><body></message>");
  match(await client.socket.readToEnd(), /<not-well-formed /);
});

Deno.test("openStream() gives the features of a stream that has not logged in", async () => {
  await using server = await TestServer.start();
  await using socket = await RawSocket.connect({ port: server.port("none") });
  const features = await openStream(socket, DOMAIN);
  match(features, /<mechanism>PLAIN<\/mechanism>/);
  strictEqual(features.includes(PASSWORD), false);
});
