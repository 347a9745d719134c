import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { join } from "node:path";
import { CertificateAuthority } from "../certificates.ts";
import { COMPONENT, TestServer } from "./testing/server.ts";
import { SlixmppClient } from "./slixmpp_client.ts";
import { XmppComponent } from "./xmpp_component.ts";
import { XmppJsClient } from "./xmpp_js_client.ts";

const KINDS = [XmppJsClient, SlixmppClient] as const;

for (const kind of KINDS) {
  Deno.test(`${kind.name} trusts no server of another authority`, async () => {
    await using server = await TestServer.start();
    const stranger = await CertificateAuthority.create();
    const caFile = join(await Deno.makeTempDir(), "ca.pem");
    await Deno.writeTextFile(caFile, stranger.certificatePem);
    for (const security of ["starttls", "direct"] as const) {
      const options = { ...server.optionsFor("alice", security), caFile };
      await rejects(kind.connect(options), /certificate/i, security);
    }
    await Deno.remove(join(caFile, ".."), { recursive: true });
  });

  Deno.test(`${kind.name} trusts no server of another name`, async () => {
    await using server = await TestServer.start("other.example");
    for (const security of ["starttls", "direct"] as const) {
      const options = server.optionsFor("alice", security);
      await rejects(kind.connect(options), /hostname mismatch|altnames/i, security);
    }
  });

  Deno.test(`${kind.name} gives no password to a server that asks for it before TLS`, async () => {
    await using server = await TestServer.start();
    const plain = server.port("none");
    const options = { ...server.optionsFor("alice", "starttls"), port: plain };
    await rejects(kind.connect(options));
  });

  Deno.test(`${kind.name} says that it was not let in`, async () => {
    await using server = await TestServer.start();
    const options = { ...server.optionsFor("alice", "starttls"), password: "wrong" };
    await rejects(kind.connect(options), /not-authorized|failed_all_auth/);
  });

  Deno.test(`${kind.name}.expectNothingElse() finds what nobody expected`, async () => {
    await using server = await TestServer.start();
    await using alice = await kind.connect(server.optionsFor("alice", "none"));
    await using bob = await XmppJsClient.connect(server.optionsFor("bob", "none"));
    await alice.expectNothingElse(bob);
    await bob.sendMessage(alice.jid, "expected");
    await bob.sendMessage(alice.jid, "surplus");
    await alice.expectMessage("expected");
    await rejects(alice.expectNothingElse(bob), /surplus/);
    deepStrictEqual(
      alice.received.map(({ body }) => body).filter((body) => !body?.startsWith("nothing-else")),
      ["expected", "surplus"],
    );
  });

  Deno.test(`${kind.name}.iq() and expectError() give what came back`, async () => {
    await using server = await TestServer.start();
    await using alice = await kind.connect(server.optionsFor("alice", "none"));
    const payload = "<query xmlns='urn:example:unknown'/>";
    const answer = await alice.iq({ type: "get", to: "nobody@example.com/x", payload });
    strictEqual(answer.errorCondition, "service-unavailable");
    const id = await alice.sendMessage("nobody@example.com", "anyone?");
    const error = await alice.expectError(id, "service-unavailable");
    strictEqual(error.from, "nobody@example.com");
    const again = await alice.sendMessage("nobody@example.com", "anyone?");
    await rejects(alice.expectError(again, "gone"), /Expected the error gone/);
  });

  Deno.test(`${kind.name}.kill() ends the connection and every wait`, async () => {
    await using server = await TestServer.start();
    const alice = await kind.connect(server.optionsFor("alice", "starttls"));
    const waiting = rejects(alice.expectMessage("never"), /disconnected|ended/);
    await alice.kill();
    await waiting;
    await alice.kill();
  });
}

Deno.test("XmppJsClient.connect() gives up on a server that says nothing it can use", async () => {
  await using server = await TestServer.start();
  const options = { ...server.optionsFor("alice", "none"), port: server.port("starttls") };
  await rejects(XmppJsClient.connect({ ...options, loginWithinMs: 300 }), /Waited 300 ms/);
});

Deno.test("XmppComponent.echo() answers from the address that was asked", async () => {
  await using server = await TestServer.start();
  const component = { ...COMPONENT, port: server.port("component") };
  await using echo = await XmppComponent.connect(component);
  echo.echo((message) => `you said ${message.body}`);
  await using alice = await SlixmppClient.connect(server.optionsFor("alice", "none"));
  await alice.sendMessage("room@echo.example.com", "hello");
  const answer = await alice.expectMessage("you said hello");
  strictEqual(answer.from, "room@echo.example.com");
  await echo.disconnect();
});

Deno.test("XmppComponent.connect() is refused with another secret", async () => {
  await using server = await TestServer.start();
  const component = { ...COMPONENT, port: server.port("component"), secret: "wrong" };
  await rejects(XmppComponent.connect(component), /not-authorized/);
});
