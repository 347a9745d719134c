import { strictEqual, throws } from "node:assert/strict";
import { Buffer } from "node:buffer";
import {
  deriveScramCredentials,
  FakeCredentials,
  SaslExchange,
  type SaslMechanism,
  type SaslReply,
} from "../../src/xmpp/sasl/mod.ts";
import { plainResponse, ScramExchange } from "./scram.ts";

const ITERATIONS = 100;
const PASSWORD = "wonder,=land";

/** The server's side of a login, for the account `alice`. */
async function serverExchange(mechanism: SaslMechanism): Promise<SaslExchange> {
  const credentials = await deriveScramCredentials(PASSWORD, ITERATIONS);
  return new SaslExchange(mechanism, {
    domain: "example.com",
    source: {
      credentials: (localpart) => Promise.resolve(localpart === "alice" ? credentials : undefined),
    },
    fake: new FakeCredentials(ITERATIONS, new Uint8Array(32)),
    nonce: () => "server-nonce",
  });
}

function textOf(reply: SaslReply, kind: SaslReply["kind"]): string {
  strictEqual(reply.kind, kind);
  return "text" in reply ? reply.text ?? "" : "";
}

Deno.test("ScramExchange and the server come to trust each other", async () => {
  for (const mechanism of ["SCRAM-SHA-1", "SCRAM-SHA-256"] as const) {
    const server = await serverExchange(mechanism);
    const client = new ScramExchange(mechanism, { localpart: "alice", password: PASSWORD });
    const challenge = textOf(await server.respond(client.first()), "challenge");
    const success = textOf(await server.respond(client.final(challenge)), "success");
    client.verify(success);
  }
});

Deno.test("ScramExchange is refused with another password", async () => {
  const server = await serverExchange("SCRAM-SHA-256");
  const client = new ScramExchange("SCRAM-SHA-256", { localpart: "alice", password: "guess" });
  const challenge = textOf(await server.respond(client.first()), "challenge");
  textOf(await server.respond(client.final(challenge)), "failure");
});

Deno.test("ScramExchange.verify() throws for a server that does not know the password", async () => {
  const server = await serverExchange("SCRAM-SHA-1");
  const client = new ScramExchange("SCRAM-SHA-1", { localpart: "alice", password: PASSWORD });
  const challenge = textOf(await server.respond(client.first()), "challenge");
  client.final(challenge);
  const forged = Buffer.from(`v=${Buffer.alloc(20).toString("base64")}`).toString("base64");
  throws(() => client.verify(forged), /signature is wrong/);
});

Deno.test("ScramExchange.final() throws for a nonce that is not its own", () => {
  const client = new ScramExchange("SCRAM-SHA-1", { localpart: "alice", password: PASSWORD });
  const challenge = Buffer.from("r=stranger,s=c2FsdA==,i=4096").toString("base64");
  throws(() => client.final(challenge), /does not extend our nonce/);
});

Deno.test("plainResponse() is what the server takes for PLAIN", async () => {
  const server = await serverExchange("PLAIN");
  const response = plainResponse({ localpart: "alice", password: PASSWORD });
  textOf(await server.respond(response), "success");
});
