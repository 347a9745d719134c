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

Deno.test("featuresXml() offers to enable inline what there is", () => {
  const inline = (isManageable: boolean, hasCarbons: boolean, hasCsi = false) => {
    const sasl2 = { isManageable, hasCarbons, hasCsi };
    const xml = featuresXml({ ...NO_FEATURES, mechanisms: ["PLAIN"], sasl2 });
    return /<bind xmlns='urn:xmpp:bind:0'(?:\/>|>(.*?)<\/bind>)/.exec(xml)![1];
  };
  const sm = "<feature var='urn:xmpp:sm:3'/>";
  const carbons = "<feature var='urn:xmpp:carbons:2'/>";
  assert.equal(inline(false, false), undefined);
  assert.equal(inline(true, false), `<inline>${sm}</inline>`);
  assert.equal(inline(false, true), `<inline>${carbons}</inline>`);
  assert.equal(inline(true, true), `<inline>${sm}${carbons}</inline>`);
  const csi = "<feature var='urn:xmpp:csi:0'/>";
  assert.equal(inline(false, false, true), `<inline>${csi}</inline>`);
  assert.equal(inline(true, true, true), `<inline>${sm}${carbons}${csi}</inline>`);
});
