import { RawSocket } from "../../clients/mod.ts";
import { readSeeds } from "../corpus.ts";
import { bytesOf } from "../fuzz_target.ts";
import { EdgeTarget } from "./edge_target.ts";

const HEADER = "<?xml version='1.0'?><stream:stream to='example.com' version='1.0' " +
  "xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";
const SASL = "urn:ietf:params:xml:ns:xmpp-sasl";
const PLAIN = `<auth xmlns='${SASL}' mechanism='PLAIN'>${btoa("\0alice\0secret")}</auth>`;
const SASL2 = "urn:xmpp:sasl:2";
const AUTHENTICATE = `<authenticate xmlns='${SASL2}' mechanism='PLAIN'><initial-response>${
  btoa("\0alice\0secret")
}</initial-response>`;
const BIND = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
const END = "</stream:stream>";

const TOKENS = [
  ..."<>/='\"&;!? \0é😀",
  HEADER,
  PLAIN,
  BIND,
  END,
  "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
  `<auth xmlns='${SASL}' mechanism='SCRAM-SHA-256'>${btoa("n,,n=alice,r=abc")}</auth>`,
  `<response xmlns='${SASL}'>${btoa("c=biws,r=abc,p=AAAA")}</response>`,
  `<abort xmlns='${SASL}'/>`,
  AUTHENTICATE,
  "</authenticate>",
  `<response xmlns='${SASL2}'/>`,
  `<abort xmlns='${SASL2}'/>`,
  "<bind xmlns='urn:xmpp:bind:0'>",
  "<tag>x</tag>",
  "</bind>",
  `<user-agent xmlns='${SASL2}' id='d4565fa7-4d72-4749-b3d3-740edbf87770'/>`,
  "<enable xmlns='urn:xmpp:sm:3' resume='true'/>",
  "<resume xmlns='urn:xmpp:sm:3' h='0' previd='x'/>",
  "<r xmlns='urn:xmpp:sm:3'/>",
  "<a xmlns='urn:xmpp:sm:3' h='4294967295'/>",
  "type='error'",
  "to='a@b@c'",
  "from='eve@example.com'",
  "xmlns='jabber:server'",
  " xmlns:p='urn:p'",
  "<p:x>",
];

const ENDING = new TextEncoder().encode("?>]]>'>\"><!DOCTYPE x>");

/** Whole conversations with a node, from the first byte through SASL and bind to stanzas. */
export function startConversation(): Promise<EdgeTarget> {
  return EdgeTarget.start({
    name: "conversation",
    tokens: bytesOf(TOKENS),
    seeds: readSeeds("conversation"),
    open: (cluster) =>
      RawSocket.connect({ port: cluster.datacenter("dc1").clientAddress("none").port }),
    ending: ENDING,
  });
}

/** A conversation inside TLS, behind `<starttls/>` or on the port where TLS comes first. */
export function startStarttls(): Promise<EdgeTarget> {
  return EdgeTarget.start({
    name: "starttls",
    tokens: bytesOf(TOKENS),
    seeds: readSeeds("conversation"),
    async open(cluster, input) {
      const datacenter = cluster.datacenter("dc1");
      const tls = {
        caCerts: [cluster.authority.certificatePem],
        serverName: cluster.globalHost,
      };
      // Either is met by half of the inputs, and by each input every time.
      if (input.length % 2 === 1) {
        return await RawSocket.connect({ port: datacenter.clientAddress("direct").port, tls });
      }
      const socket = await RawSocket.connect({ port: datacenter.clientAddress("starttls").port });
      await socket.send(`${HEADER}<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>`);
      await socket.readUntil("<proceed");
      await socket.readUntil(">");
      await socket.startTls(tls);
      return socket;
    },
    ending: ENDING,
  });
}
