import assert from "node:assert/strict";
import type {
  RequestBounds,
  RequestChange,
  SubscriptionRequest,
  SubscriptionRequestStore,
} from "../subscription_request_store.ts";

/** One backend, empty, opened for one test. */
export interface RequestStoreFixture extends AsyncDisposable {
  /** Returns the requests. Each call may return another object. */
  requests(bounds?: RequestBounds): SubscriptionRequestStore;
}

/** Makes a request that differs from others by its names and its text. */
export function conformanceRequest(
  requester: string,
  contact: string,
  { text = "hello", sender = requester } = {},
): SubscriptionRequest {
  const stanza = new TextEncoder().encode(
    `<presence from='${requester}' to='${contact}' type='subscribe'>${text}</presence>`,
  );
  const entry = { origin: "dc1.example.com", process: 2 ** 52 - 1, sequence: 7 };
  return { requester, contact, sender, stanza, ...entry };
}

const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.com"];

/** The changes that keep `requests`. */
function keep(...requests: readonly SubscriptionRequest[]): RequestChange[] {
  return requests.map((request) => ({ kind: "keep", request }));
}

/** Returns the requesters of `contact`, the oldest request first. */
async function requesters(store: SubscriptionRequestStore, contact: string): Promise<string[]> {
  return (await store.ofContact(contact)).map(({ requester }) => requester);
}

type Check = (fixture: RequestStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "ofContact() returns the kept requests, the oldest first"(fixture) {
    const store = fixture.requests();
    const [first, second] = [conformanceRequest(ALICE, BOB), conformanceRequest(CAROL, BOB)];
    assert.equal(await store.change(keep(first)), 0);
    assert.equal(await store.change(keep(second, conformanceRequest(BOB, ALICE))), 0);
    assert.deepEqual(await store.ofContact(BOB), [first, second]);
    assert.deepEqual(await store.ofContact(CAROL), []);
    assert.deepEqual(await store.contacts(), [ALICE, BOB]);
    assert.equal(await store.count(), 3);
  },

  async "change() replaces the older request of a pair by the newer one"(fixture) {
    const store = fixture.requests();
    await store.change(keep(conformanceRequest(ALICE, BOB), conformanceRequest(CAROL, BOB)));
    const newer = conformanceRequest(ALICE, BOB, { text: "me again" });
    assert.equal(await store.change(keep(newer)), 0);
    assert.deepEqual(await requesters(store, BOB), [CAROL, ALICE]);
    assert.deepEqual((await store.ofContact(BOB))[1], newer);
  },

  async "change() removes the oldest request of a sender that has too many"(fixture) {
    const store = fixture.requests({ maxPerSender: 2 });
    await store.change(keep(conformanceRequest(CAROL, "x@example.com")));
    const contacts = ["a", "b", "c", "d"].map((name) => `${name}@example.com`);
    const displaced = await store.change(
      keep(...contacts.map((each) => conformanceRequest(ALICE, each))),
    );
    assert.equal(displaced, 2);
    assert.deepEqual(await store.contacts(), [contacts[2], contacts[3], "x@example.com"]);
  },

  async "a component's whole domain is one sender"(fixture) {
    const store = fixture.requests({ maxPerSender: 1 });
    const sender = "rooms.example.com";
    await store.change(
      keep(
        conformanceRequest(`a@${sender}`, BOB, { sender }),
        conformanceRequest(`b@${sender}`, BOB, { sender }),
      ),
    );
    assert.deepEqual(await requesters(store, BOB), [`b@${sender}`]);
  },

  async "change() removes the oldest request for a contact that has too many"(fixture) {
    const store = fixture.requests({ maxPerContact: 2 });
    await store.change(keep(conformanceRequest(ALICE, CAROL)));
    const names = ["a", "b", "c"].map((name) => `${name}@example.com`);
    assert.equal(
      await store.change(keep(...names.map((each) => conformanceRequest(each, BOB)))),
      1,
    );
    assert.deepEqual(await requesters(store, BOB), names.slice(1));
    assert.deepEqual(await requesters(store, CAROL), [ALICE]);
  },

  async "a sender that speaks for many takes no room for a contact from the others"(fixture) {
    const store = fixture.requests({ maxPerContact: 3 });
    const sender = "rooms.example.com";
    const rooms = ["a", "b", "c", "d"].map((name) => `${name}@${sender}`);
    await store.change(keep(conformanceRequest(ALICE, BOB)));
    const displaced = await store.change(
      keep(...rooms.map((each) => conformanceRequest(each, BOB, { sender }))),
    );
    assert.equal(displaced, 2);
    assert.deepEqual(await requesters(store, BOB), [ALICE, ...rooms.slice(2)]);
    await store.change(keep(conformanceRequest(CAROL, BOB)));
    assert.deepEqual(await requesters(store, BOB), [ALICE, rooms[3], CAROL]);
  },

  async "change() removes the oldest request of all when there are too many"(fixture) {
    const store = fixture.requests({ maxRequests: 3 });
    const names = ["a", "b", "c", "d", "e"].map((name) => `${name}@example.com`);
    assert.equal(
      await store.change(keep(...names.map((each) => conformanceRequest(each, each)))),
      2,
    );
    assert.deepEqual(await store.contacts(), names.slice(2));
    assert.equal(await store.count(), 3);
  },

  async "change() removes all requests of an account, and all for it"(fixture) {
    const store = fixture.requests();
    await store.change(
      keep(
        conformanceRequest(ALICE, BOB),
        conformanceRequest(CAROL, BOB),
        conformanceRequest(BOB, ALICE),
        conformanceRequest(CAROL, ALICE),
      ),
    );
    await store.change([{ kind: "remove-account", account: ALICE }]);
    assert.deepEqual(await requesters(store, ALICE), []);
    assert.deepEqual(await requesters(store, BOB), [CAROL]);
  },

  async "change() removes pairs, and ignores pairs without a request"(fixture) {
    const store = fixture.requests();
    await store.change(keep(conformanceRequest(ALICE, BOB), conformanceRequest(CAROL, BOB)));
    await store.change([
      { kind: "remove", pair: { requester: ALICE, contact: BOB } },
      { kind: "remove", pair: { requester: BOB, contact: ALICE } },
    ]);
    assert.deepEqual(await requesters(store, BOB), [CAROL]);
  },

  async "change() with remove-same leaves a newer request of the pair"(fixture) {
    const store = fixture.requests();
    const [older, newer] = [
      conformanceRequest(ALICE, BOB),
      conformanceRequest(ALICE, BOB, { text: "me again" }),
    ];
    await store.change(keep(older));
    await store.change(keep(newer));
    await store.change([{ kind: "remove-same", request: older }]);
    assert.deepEqual(await store.ofContact(BOB), [newer]);
    await store.change([{ kind: "remove-same", request: newer }]);
    assert.deepEqual(await store.ofContact(BOB), []);
  },

  async "change() takes its steps in order"(fixture) {
    const store = fixture.requests();
    const [request, pair] = [conformanceRequest(ALICE, BOB), { requester: ALICE, contact: BOB }];
    await store.change([...keep(request), { kind: "remove", pair }]);
    assert.equal(await store.count(), 0);
    await store.change([{ kind: "remove", pair }, ...keep(request)]);
    assert.equal(await store.count(), 1);
  },

  async "a request is kept byte by byte, for JIDs as long as RFC 7622 allows"(fixture) {
    const store = fixture.requests();
    const long = (letter: string) => `${letter.repeat(1023)}@${letter.repeat(1023)}`;
    const stanza = Uint8Array.from({ length: 60_000 }, (_, i) => i & 0xff);
    const request = { ...conformanceRequest(long("a"), long("b")), stanza };
    await store.change(keep(request));
    await store.change(keep(conformanceRequest(long("a"), `${long("b").slice(0, -1)}c`)));
    assert.deepEqual(await store.ofContact(long("b")), [request]);
    await store.change([{ kind: "remove-same", request }]);
    assert.deepEqual(await store.ofContact(long("b")), []);
    assert.equal(await store.count(), 1);
  },

  async "simultaneous changes lose nothing"(fixture) {
    const contacts = ["w", "x", "y", "z"].map((name) => `${name}@example.com`);
    await Promise.all(Array.from({ length: 12 }, (_, i) => {
      const asked = i % 2 === 0 ? contacts : contacts.toReversed();
      const requester = `user${i % 6}@example.com`;
      return fixture.requests().change(
        keep(...asked.map((contact) => conformanceRequest(requester, contact))),
      );
    }));
    for (const contact of contacts) {
      const asking = await requesters(fixture.requests(), contact);
      const expected = [0, 1, 2, 3, 4, 5].map((i) => `user${i}@example.com`);
      assert.deepEqual(asking.toSorted(), expected);
    }
  },

  async "two objects see each other's changes"(fixture) {
    await fixture.requests().change(keep(conformanceRequest(ALICE, BOB)));
    assert.deepEqual(await requesters(fixture.requests(), BOB), [ALICE]);
  },
};

/** Registers the tests that every `SubscriptionRequestStore` passes unchanged; `open` gives an empty backend. */
export function subscriptionRequestStoreConformance(
  name: string,
  open: () => Promise<RequestStoreFixture>,
): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}
