import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { DIRECTORY_BASE, DirectoryServer, personLdif } from "../../../harness/databases/mod.ts";
import { TestCertificates } from "../../net/testing/certificates.ts";
import type { LdapPoolOptions } from "./ldap_directory.ts";
import { placeOf, poolOf, storesAt } from "./testing/directory.ts";

const ALICE = personLdif({ uid: "alice", password: "secret" });

/** Time limits that tests reach. */
const SHORT: LdapPoolOptions["bounds"] = {
  workers: 2,
  waitTimeoutMs: 20_000,
  connectTimeoutMs: 20_000,
  statementTimeoutMs: 300,
};

function usersAt(stores: ReturnType<typeof storesAt>) {
  return stores.users(placeOf(), "example.com");
}

/** A server that answers each chunk of a client with these bytes. */
async function serverOf(answer: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}); // the client cuts it
    socket.on("data", () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port, // it listens on TCP
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

Deno.test("a directory that is killed gives a named error, and works again when it is back", async () => {
  await using directory = await DirectoryServer.start({ ldif: ALICE });
  await using stores = storesAt(poolOf(directory.port));
  const users = usersAt(stores);
  assert.match((await users.checkPassword!("alice", "secret"))!.creation!, /-/);
  await directory.kill();
  await assert.rejects(users.checkPassword!("alice", "secret"), {
    code: "storage/unreachable",
    message:
      /^Cannot .* the directory ldap\.default \(LDAP at 127\.0\.0\.1:\d+\): it cannot be reached/,
  });
  assert.ok(stores.inUse.some((each) => each.checkFailure() !== undefined));
  await directory.launch();
  for (;;) {
    try {
      assert.match((await users.checkPassword!("alice", "secret"))!.creation!, /-/);
      break;
    } catch (thrown) {
      assert.equal((thrown as { code?: string }).code, "storage/unreachable");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  // Restarted between two requests: the connections that were idle are lost.
  await directory.kill();
  await directory.launch();
  assert.equal(await users.exists("alice"), true);
});

Deno.test("a directory that stands still costs a request its time limit", async () => {
  await using directory = await DirectoryServer.start({ ldif: ALICE });
  await using stores = storesAt(poolOf(directory.port, { bounds: SHORT }));
  const users = usersAt(stores);
  // The server's own start may be slow, its answers later are not.
  while (!await users.exists("alice").catch(() => false));
  const resume = directory.suspend();
  try {
    await assert.rejects(users.exists("alice"), { code: "storage/timeout" });
  } finally {
    resume();
  }
  while (!await users.exists("alice").catch(() => false));
});

Deno.test("answers that are no LDAP, or far too long, give named errors at once", async () => {
  const bytes = (...values: number[]) => Uint8Array.from(values);
  for (
    const [what, answer, code] of [
      ["another protocol", new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n"), "garbled"],
      ["a length without end", bytes(0x30, 0x80), "garbled"],
      ["an empty message", bytes(0x30, 0x00), "garbled"],
      ["a message of 4 GB", bytes(0x30, 0x84, 0xff, 0xff, 0xff, 0xff), "too-large"],
    ] as const
  ) {
    await using server = await serverOf((socket) => socket.write(answer));
    await using stores = storesAt(poolOf(server.port));
    await assert.rejects(usersAt(stores).exists("alice"), { code: `storage/${code}` }, what);
  }
});

Deno.test("messages that make no sense cost a request its time limit, however many they are", async () => {
  // 9000 messages of a number that nobody asked for, in one chunk.
  const noise = Uint8Array.from(
    Array.from({ length: 9_000 }, () => [0x30, 0x05, 0x02, 0x01, 0x63, 0x64, 0x00]).flat(),
  );
  await using server = await serverOf((socket) => socket.write(noise));
  await using stores = storesAt(poolOf(server.port, { bounds: SHORT }));
  await assert.rejects(usersAt(stores).exists("alice"), { code: "storage/timeout" });
});

Deno.test("a connection that is closed in the middle of an answer gives a named error", async () => {
  await using server = await serverOf((socket) => socket.end(Uint8Array.of(0x30, 0x10, 0x02)));
  await using stores = storesAt(poolOf(server.port));
  await assert.rejects(usersAt(stores).exists("alice"), { code: "storage/unreachable" });
});

Deno.test("a wrong login, a wrong base and a referral give named errors", async () => {
  await using directory = await DirectoryServer.start({
    ldif: ALICE + `dn: ou=elsewhere,${DIRECTORY_BASE}
objectClass: referral
objectClass: extensibleObject
ou: elsewhere
ref: ldap://127.0.0.1:1/ou=elsewhere,dc=example,dc=org

`,
    settings: [`access to dn.subtree="ou=elsewhere,${DIRECTORY_BASE}" by * read`],
  });
  const { port } = directory;
  await using wrong = storesAt(poolOf(port, { password: { reveal: () => "wrong" } }));
  await assert.rejects(wrong.probe(["default"]), { code: "storage/denied" });
  await using stores = storesAt(poolOf(port));
  const at = (base: string) => stores.users(placeOf({ base }), "example.com").exists("alice");
  await assert.rejects(at(`ou=nowhere,${DIRECTORY_BASE}`), { code: "storage/no-base" });
  await assert.rejects(at(`ou=elsewhere,${DIRECTORY_BASE}`), { code: "storage/referral" });
  assert.equal(await at(DIRECTORY_BASE), true, "a referral among the entries is left out");
});

Deno.test("of several servers the first one that answers is used", async () => {
  await using directory = await DirectoryServer.start({ ldif: ALICE });
  await using stores = storesAt(
    poolOf(directory.port, { servers: ["127.0.0.2", "127.0.0.1"] }),
  );
  assert.equal(await usersAt(stores).exists("alice"), true);
});

for (const mode of ["tls", "starttls"] as const) {
  Deno.test(`${mode} accepts the server that its authority names, and no other`, async () => {
    await using certificates = await TestCertificates.create();
    const authority = await certificates.authority();
    const stranger = await certificates.authority("another authority");
    const certificate = await authority.issue({ names: ["localhost"] });
    await using directory = await DirectoryServer.start({ ldif: ALICE });
    const attempt = async (changes: Partial<LdapPoolOptions>) => {
      const encrypted = { encryption: mode, servers: ["localhost"], ...changes };
      await using stores = storesAt(poolOf(directory.port, encrypted));
      return await usersAt(stores).checkPassword!("alice", "secret") !== undefined;
    };
    const { cafile } = authority;
    await assert.rejects(attempt({ tls: { cafile } }), {
      code: mode === "starttls" ? "storage/no-tls" : /^storage\//,
    });
    await directory.launchWithTls(certificate, mode);
    assert.equal(await attempt({ tls: { cafile } }), true);
    await assert.rejects(attempt({ tls: { cafile: stranger.cafile } }), {
      code: "storage/untrusted",
    });
    await assert.rejects(attempt({ tls: {} }), { code: "storage/untrusted" });
    await assert.rejects(attempt({ tls: { cafile }, servers: ["127.0.0.1"] }), {
      code: "storage/untrusted",
    });
  });
}
