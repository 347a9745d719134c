import assert from "node:assert/strict";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import type { ServiceModule } from "../mod.ts";
import { AccountServices } from "../testing/account_services.ts";
import { DEFAULT_PRIVACY_BOUNDS } from "./privacy_bounds.ts";
import { blockingServices } from "./blocking_services.ts";
import { PrivacyServer } from "./privacy_server.ts";
import { privacyServices } from "./privacy_services.ts";

const BLOCK_LIST = "<blocklist xmlns='urn:xmpp:blocking'/>";
const LISTS = "<query xmlns='jabber:iq:privacy'/>";

/** The services over a built-in store, without sessions. */
function open(off: readonly `${string} ${ServiceModule}`[] = []): Promise<AccountServices> {
  return AccountServices.open((store, clock) => {
    const server = new PrivacyServer({
      process: 1,
      hosts: {
        localHost: "dc1.example.com",
        globalHost: "example.com",
        store: (domain) => store.privacyLists(domain),
        rosters: () => undefined,
        bounds: () => DEFAULT_PRIVACY_BOUNDS,
      },
      everywhere: () => Promise.resolve(new Map()),
      route: () => {},
      deliver: () => {},
      changed: () => {},
      clock,
      metrics: new MetricsRegistry(clock),
      log: SILENT_LOGGER,
    });
    return [...privacyServices(server), ...blockingServices(server)];
  }, { off });
}

Deno.test("the block list is kept in the store, and shown to its owner alone", async () => {
  await using services = await open();
  const block = "<block xmlns='urn:xmpp:blocking'><item jid='Bob@example.com'/></block>";
  assert.match(await services.ask("set", block), /type='result'/);
  assert.match(await services.ask("get", BLOCK_LIST), /<item jid='bob@example.com'\/>/);
  assert.match(await services.ask("get", LISTS), /<default name='blocking'\/>/);
  for (const payload of [BLOCK_LIST, LISTS]) {
    const from = "bob@example.com/desk";
    assert.equal(await services.ask("get", payload, { from }), "service-unavailable");
  }
});

Deno.test("both protocols are advertised, each unless it is off", async () => {
  const features = ["jabber:iq:privacy", "urn:xmpp:blocking"];
  const advertised = async (services: AccountServices) =>
    (await services.features("example.com")).filter((each) => features.includes(each));
  {
    await using services = await open();
    assert.deepEqual(await advertised(services), features);
  }
  await using services = await open(["example.com mod_blocking"]);
  assert.deepEqual(await advertised(services), ["jabber:iq:privacy"]);
  assert.equal(await services.ask("get", BLOCK_LIST), "service-unavailable");
  assert.match(await services.ask("get", LISTS), /type='result'/);
});
