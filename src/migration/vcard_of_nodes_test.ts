import assert from "node:assert/strict";
import { Destination, document, HOST, user } from "./testing/destination.ts";

const CARD = "<vcard xmlns='urn:ietf:params:xml:ns:vcard-4.0'><fn><text>Alice L.</text></fn>" +
  "<n><surname>Liddell</surname><given>Alice</given><additional>P.</additional>" +
  "<additional>Q.</additional></n><nickname><text>al</text></nickname>" +
  "<bday><date>1852-05-04</date></bday><url><uri>https://example.com/</uri></url>" +
  "<org><text>Tea</text><text>Cups</text></org><title><text>Guest</text></title>" +
  "<role><text>Girl</text></role><note><text>curious &amp; small</text></note>" +
  "<email><parameters><type><text>work</text></type></parameters><text>a@example.com</text></email>" +
  "<tel><parameters><type><text>cell</text><text>Home</text><text>odd</text></type></parameters>" +
  "<uri>tel:+44-20</uri></tel><tel><text>7</text></tel>" +
  "<adr><street>1 Hole</street><locality>Oxford</locality><country>UK</country></adr>" +
  "<gender><sex>F</sex></gender></vcard>";

/** Returns a node with one item, which `model` says who may see. */
function node(name: string, payload: string, model = "open"): string {
  const pubsub = "http://jabber.org/protocol/pubsub";
  return `<pubsub xmlns='${pubsub}'><items node='${name}'><item id='current'>${payload}</item>` +
    `</items></pubsub><pubsub xmlns='${pubsub}#owner'><configure node='${name}'>` +
    "<x xmlns='jabber:x:data' type='submit'><field var='pubsub#access_model'>" +
    `<value>${model}</value></field></x></configure></pubsub>`;
}

const AVATAR = node(
  "urn:xmpp:avatar:data",
  "<data xmlns='urn:xmpp:avatar:data'>qANQR1DBwU4=</data>",
);
const METADATA = node(
  "urn:xmpp:avatar:metadata",
  "<metadata xmlns='urn:xmpp:avatar:metadata'><info id='1' type='image/jpeg' bytes='8'/></metadata>",
);

/** Imports an account with this content, and returns its vCard. */
async function vcardFrom(content: string): Promise<string | undefined> {
  await using destination = await Destination.open();
  const path = await destination.write(document(user("alice", content)));
  const { added, findings } = await destination.importFiles(path);
  assert.deepEqual([added, findings], [1, 0], destination.report().join("\n"));
  return await destination.store.vcards(HOST).read("alice");
}

Deno.test("importAccounts() makes a vCard of XEP-0054 of one in personal eventing", async () => {
  assert.equal(
    await vcardFrom(node("urn:xmpp:vcard4", CARD) + AVATAR + METADATA),
    "<vCard xmlns='vcard-temp'><FN>Alice L.</FN><N><FAMILY>Liddell</FAMILY><GIVEN>Alice</GIVEN>" +
      "<MIDDLE>P. Q.</MIDDLE></N><NICKNAME>al</NICKNAME><BDAY>1852-05-04</BDAY>" +
      "<URL>https://example.com/</URL><ORG><ORGNAME>Tea</ORGNAME><ORGUNIT>Cups</ORGUNIT></ORG>" +
      "<TITLE>Guest</TITLE><ROLE>Girl</ROLE><DESC>curious &amp; small</DESC>" +
      "<EMAIL><WORK/><INTERNET/><USERID>a@example.com</USERID></EMAIL>" +
      "<TEL><HOME/><CELL/><NUMBER>+44-20</NUMBER></TEL><TEL><NUMBER>7</NUMBER></TEL>" +
      "<ADR><STREET>1 Hole</STREET><LOCALITY>Oxford</LOCALITY><CTRY>UK</CTRY></ADR>" +
      "<PHOTO><TYPE>image/jpeg</TYPE><BINVAL>qANQR1DBwU4=</BINVAL></PHOTO></vCard>",
  );
});

Deno.test("importAccounts() makes a vCard of an avatar alone", async () => {
  assert.equal(
    await vcardFrom(AVATAR),
    "<vCard xmlns='vcard-temp'><PHOTO><TYPE>image/png</TYPE><BINVAL>qANQR1DBwU4=</BINVAL></PHOTO>" +
      "</vCard>",
  );
});

Deno.test("importAccounts() shows nobody a vCard that not everybody might see", async () => {
  for (const model of ["presence", "roster", "whitelist"]) {
    assert.equal(await vcardFrom(node("urn:xmpp:vcard4", CARD, model)), undefined, model);
  }
});

Deno.test("importAccounts() takes a vCard of XEP-0054 where there is one", async () => {
  const own = "<vCard xmlns='vcard-temp'><FN>Own</FN></vCard>";
  assert.equal(await vcardFrom(own + node("urn:xmpp:vcard4", CARD) + AVATAR), own);
});
