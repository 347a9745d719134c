import { CausewayError } from "../../../base/mod.ts";
import { element } from "../../../xmpp/mod.ts";
import { ROSTER_NAMESPACE } from "../roster_query.ts";
import { item, lines, RosterFixture } from "./roster_fixture.ts";

export const ALICE = "alice@example.com";
export const BOB = "bob@example.com";
export const CAROL = "carol@example.com";
/** A session of alice at this node. */
export const PHONE = `${ALICE}/phone`;
export const DC2 = "dc2.example.com";
/** Error of a database that cannot be reached. */
export const DOWN = new CausewayError("storage/unreachable", "Cannot reach it", {
  retryable: true,
});

/** Returns a roster query with these items. */
export function query(...items: readonly Record<string, string>[]) {
  return element(
    "query",
    { xmlns: ROSTER_NAMESPACE },
    ...items.map((each) => element("item", each)),
  );
}

/** alice has a phone here and a laptop at dc2. */
export function withAlice(fixture = new RosterFixture()): RosterFixture {
  fixture.here.set(PHONE, undefined);
  fixture.elsewhere.set(ALICE, [{ host: DC2, resourcepart: "laptop", process: 2 }]);
  return fixture;
}

/** The same, and bob at dc2 sees her presence. */
export function withBobAtDc2(): RosterFixture {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  return fixture;
}

/** Stanzas that were sent to bob, in one line each. */
export function toBob({ sent }: RosterFixture): readonly string[] {
  return lines(sent.map(({ stanza }) => stanza).filter(({ to }) => to.text === BOB));
}
