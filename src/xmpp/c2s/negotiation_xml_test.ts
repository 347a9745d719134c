import assert from "node:assert/strict";
import { NO_FEATURES } from "./negotiation_events.ts";
import { featuresXml } from "./negotiation_xml.ts";

Deno.test("featuresXml() names the features of the account's host behind those of the stream", () => {
  const bindable = { ...NO_FEATURES, isBindable: true };
  const plain = featuresXml(bindable);
  assert.ok(plain.startsWith("<bind "));
  assert.equal(featuresXml({ ...bindable, account: [] }), plain);
  assert.equal(
    featuresXml({ ...bindable, account: ["roster-versions", "pre-approval"] }),
    `${plain}<ver xmlns='urn:xmpp:features:rosterver'/><sub xmlns='urn:xmpp:features:pre-approval'/>`,
  );
});
