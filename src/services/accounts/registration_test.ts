import assert from "node:assert/strict";
import { CausewayError, ManualClock } from "../../base/mod.ts";
import { MemoryLogger } from "../../observe/mod.ts";
import { InternalStore } from "../../storage/mod.ts";
import type { CreationOutcome, ScramCredentials } from "../../xmpp/mod.ts";
import { IpAccess, isNetwork } from "./ip_access.ts";
import type { IpRule } from "./ip_access.ts";
import { passwordBits } from "./password_strength.ts";
import { Registration } from "./registration.ts";

const HOST = "example.com";
const GOOD = "Correct horse 1";
const HOME = "192.0.2.1:4000";

const CREDENTIALS: ScramCredentials = (() => {
  const keys = (length: number) => ({
    salt: new Uint8Array(16),
    iterations: 4096,
    storedKey: new Uint8Array(length),
    serverKey: new Uint8Array(length),
  });
  return { sha1: keys(20), sha256: keys(32) };
})();

class Setup {
  readonly clock = new ManualClock();
  readonly derived: string[] = [];
  readonly registration: Registration;

  constructor(store: InternalStore, options: { ipAccess?: IpRule[]; timeoutMs?: number } = {}) {
    const { ipAccess = [], timeoutMs = 600_000 } = options;
    this.registration = new Registration({
      hosts: new Map([[HOST, { ipAccess, timeoutMs, passwordStrength: 32 }]]),
      usersOf: (host) => store.users(host),
      add: ({ localpart, domainpart }, credentials) =>
        store.users(domainpart).add(localpart, credentials),
      derive: (password) => {
        this.derived.push(password);
        return password.includes("\u0000")
          ? Promise.reject(new CausewayError("sasl/password-unusable", "Cannot use it"))
          : Promise.resolve(CREDENTIALS);
      },
      logger: new MemoryLogger(),
      clock: this.clock,
    });
  }

  create(username: string, password = GOOD, remoteAddress = HOME): Promise<CreationOutcome> {
    return this.registration.create({ username, password, host: HOST }, {
      remoteAddress,
      isLoopback: false,
    });
  }
}

async function withStore(work: (store: InternalStore) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempFile({ prefix: "causeway-registration-" });
  await Deno.remove(path);
  try {
    await using store = await InternalStore.open({ path });
    await work(store);
  } finally {
    for (const end of ["", "-wal", "-shm"]) await Deno.remove(path + end).catch(() => {});
  }
}

Deno.test("Registration makes an account under the name as it is normalised", () =>
  withStore(async (store) => {
    const { registration } = new Setup(store);
    const setup = new Setup(store, { timeoutMs: 0 });
    assert.equal(await setup.create("AliCe"), "made");
    assert.equal(await store.users(HOST).exists("alice"), true);
    assert.equal(await setup.create("alice"), "conflict");
    assert.deepEqual(setup.derived, [GOOD], "a name that is taken costs no derivation");
    const peer = { remoteAddress: HOME, isLoopback: false };
    assert.equal(registration.mayCreate(HOST, peer), true);
    assert.equal(registration.mayCreate("example.org", peer), false);
    const elsewhere = { username: "bob", password: GOOD, host: "example.org" };
    assert.equal(await registration.create(elsewhere, peer), "not-allowed");
  }));

Deno.test("Registration refuses names that are none and passwords that are weak", () =>
  withStore(async (store) => {
    const setup = new Setup(store);
    for (const name of ["", "a@b", "a b", "x".repeat(1024), "a/b"]) {
      assert.equal(await setup.create(name), "jid-malformed", name);
    }
    assert.equal(await setup.create("alice", "abc"), "not-acceptable");
    assert.equal(await setup.create("alice", ""), "not-acceptable");
    assert.deepEqual(setup.derived, []);
    assert.equal(await setup.create("alice", `${GOOD}\u0000`), "not-acceptable");
    assert.deepEqual(await store.users(HOST).list(), []);
  }));

Deno.test("Registration lets an address make one account in each timeout", () =>
  withStore(async (store) => {
    const setup = new Setup(store);
    assert.equal(await setup.create("alice", GOOD, "[2001:db8:1:2::1]:1"), "made");
    assert.equal(await setup.create("bob", GOOD, "[2001:db8:1:2::2]:2"), "resource-constraint");
    assert.equal(await setup.create("alice", GOOD, "[2001:db8:1:3::2]:2"), "conflict");
    assert.equal(
      await setup.create("bob", GOOD, "[2001:db8:1:3::2]:2"),
      "made",
      "a conflict is free",
    );
    setup.clock.advance(600_000);
    assert.equal(await setup.create("carol", GOOD, "[2001:db8:1:2::2]:2"), "made");
  }));

Deno.test("Registration follows the narrowest rule on the address", () =>
  withStore(async (store) => {
    const setup = new Setup(store, {
      ipAccess: [
        { address: "192.0.2.0/24", policy: "deny" },
        { address: "192.0.2.7", policy: "allow" },
      ],
    });
    assert.equal(await setup.create("alice"), "not-allowed");
    const peer = { remoteAddress: "192.0.2.7:1", isLoopback: false };
    assert.equal(setup.registration.mayCreate(HOST, peer), true);
    assert.equal(await setup.create("alice", GOOD, peer.remoteAddress), "made");
  }));

Deno.test("Registration names a store that fails", () =>
  withStore(async (store) => {
    const setup = new Setup(store);
    await store.close();
    assert.equal(await setup.create("alice"), "internal-server-error");
  }));

Deno.test("IpAccess knows IPv4, IPv6 and mapped addresses", () => {
  const access = new IpAccess([
    { address: "0.0.0.0/0", policy: "deny" },
    { address: "::/0", policy: "deny" },
    { address: "10.0.0.0/8", policy: "allow" },
    { address: "2001:db8::/32", policy: "allow" },
  ]);
  for (
    const [address, expected] of [
      ["10.1.2.3:5", true],
      ["11.1.2.3:5", false],
      ["[::ffff:10.1.2.3]:5", true],
      ["[2001:db8::1]:5", true],
      ["[2001:db9::1]:5", false],
      ["[fe80::1%eth0]:5", false],
    ] as const
  ) assert.equal(access.isAllowed(address), expected, address);
  assert.equal(new IpAccess([]).isAllowed("[::1]:1"), true);
});

Deno.test("isNetwork() tells networks from other texts", () => {
  for (const text of ["192.0.2.1", "192.0.2.0/24", "::1", "2001:db8::/32"]) {
    assert.equal(isNetwork(text), true, text);
  }
  for (const text of ["", "x", "192.0.2.0/33", "::/129", "192.0.2.0/", "192.0.2.0/2/2", "1.2.3"]) {
    assert.equal(isNetwork(text), false, text);
  }
});

Deno.test("passwordBits() counts length and kinds of characters", () => {
  assert.equal(passwordBits(""), 0);
  assert.equal(Math.round(passwordBits("abcdefgh")), 38);
  assert.equal(Math.round(passwordBits("aB3-")), 26);
  assert.ok(passwordBits("😀😀😀") > passwordBits("abc"));
});
