import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { parseJid } from "../../jid/jid_parser.ts";
import type { RawPeer } from "../../stream/testing/raw_peer.ts";
import type { Stanza } from "../../stanza/stanza.ts";
import { authenticate, C2sFixture } from "./c2s_fixture.ts";
import type { FixtureOptions } from "./c2s_fixture.ts";
import { TestDelivery } from "./delivery.ts";

export const SM = "urn:xmpp:sm:3";
export const ENABLE = `<enable xmlns='${SM}' resume='true'/>`;
export const ENABLED = new RegExp(
  `^<enabled xmlns='${SM}' id='([0-9a-f]{1,13}-[0-9a-f]{32})' resume='true' max='(\\d+)'/>`,
);
export const R = `<r xmlns='${SM}'/>`;
export const FAILED = (condition: string, h = "") =>
  `<failed xmlns='${SM}'${h}><${condition} xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>`;
export const A = (h: number) => `<a xmlns='${SM}' h='${h}'/>`;
export const HOME = "alice@example.com/home";

/** A fixture whose clock stands still until moved, and whose server sends no `<r/>` of its own accord. */
export function quiet(options: FixtureOptions = {}): C2sFixture & { clock: ManualClock } {
  const fixture = new C2sFixture({
    clock: new ManualClock(),
    ...options,
    management: { ackFreq: 1000, ...options.management },
  });
  return fixture as C2sFixture & { clock: ManualClock }; // made with one above
}

/** Logs in, enables stream management, and returns the id to resume by. */
export async function manage(
  fixture: C2sFixture,
  user = "alice",
  resource = "home",
): Promise<{ peer: RawPeer; id: string }> {
  const peer = await fixture.login(user, resource);
  const [, id] = await peer.exchange(ENABLE, ENABLED);
  return { peer, id: id! };
}

/** Returns a client that has authenticated and not bound. */
export async function comeBack(fixture: C2sFixture, user = "alice"): Promise<RawPeer> {
  const peer = fixture.connect();
  await authenticate(peer, user);
  return peer;
}

export const resume = (id: string, h: number) => `<resume xmlns='${SM}' previd='${id}' h='${h}'/>`;

/** Builds a stanza from outside to alice's session. */
export function message(id: string, to = HOME, kind: Stanza["kind"] = "message"): TestDelivery {
  const text = `<${kind} from='bob@example.com/x' to='${to}' id='${id}'/>`;
  return new TestDelivery({
    kind,
    type: kind === "message" ? "chat" : "available",
    from: parseJid("bob@example.com/x"),
    to: parseJid(to),
    bytes: new TextEncoder().encode(text),
  });
}

export function send(fixture: C2sFixture, ...ids: string[]): TestDelivery[] {
  return ids.map((id) => {
    const delivery = message(id);
    fixture.route(delivery);
    return delivery;
  });
}

export async function expectMessages(peer: RawPeer, ...ids: string[]): Promise<void> {
  for (const id of ids) await peer.expectNext(new RegExp(`^<message [^>]*id='${id}'/>`));
}

export async function expectEnd(peer: RawPeer, error: RegExp | string): Promise<void> {
  await peer.expect(error);
  assert.match(await peer.expectClosed(), /^[^<]*(<\/stream:error>)?<\/stream:stream>$/);
}

/** Waits for the server's side to process the end of a connection. */
export async function until(claim: () => boolean): Promise<void> {
  for (let turn = 0; turn < 30_000 && !claim(); turn++) {
    await new Promise((resolve) => setTimeout(resolve));
  }
  assert.ok(claim(), String(claim));
}

export const metric = (fixture: C2sFixture, name: string, labels = {}) =>
  fixture.metrics.value(name, labels);
