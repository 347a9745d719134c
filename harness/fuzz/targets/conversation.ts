import { Cluster } from "../../cluster/mod.ts";
import { RawClient, RawSocket } from "../../clients/mod.ts";
import { bytesOf } from "../fuzz_target.ts";
import type { LiveFuzzTarget } from "../fuzz_target.ts";
import { NodeWatch, WITHIN_MS } from "./node_watch.ts";

const HEADER = "<?xml version='1.0'?><stream:stream to='example.com' version='1.0' " +
  "xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";
const SASL = "urn:ietf:params:xml:ns:xmpp-sasl";
const PLAIN = `<auth xmlns='${SASL}' mechanism='PLAIN'>${btoa("\0alice\0secret")}</auth>`;
const BIND = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
const TALK = "<presence><priority>1</priority></presence>" +
  "<message to='bob@example.com' type='chat' id='m'><body>hello</body></message>" +
  "<iq type='get' to='example.com' id='i'><query xmlns='http://jabber.org/protocol/disco#items'/></iq>" +
  "<presence type='unavailable'/>";
const END = "</stream:stream>";

/** Behind this nothing that was left open goes on: the node has to end the stream. */
const ENDING = new TextEncoder().encode("?>]]>'>\"><!DOCTYPE x>");

/** A well-behaved client is asked this often whether the node still answers it. */
const INPUTS_PER_CHECK = 50;

/**
 * Whole conversations with a node, from the first byte through STARTTLS, SASL and bind to stanzas: it
 * must end each within a second, log no bug of its own, and go on serving others.
 */
export class ConversationTarget implements LiveFuzzTarget {
  readonly name = "conversation";
  readonly tokens = bytesOf([
    ..."<>/='\"&;!? \0é😀",
    HEADER,
    PLAIN,
    BIND,
    END,
    "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
    `<auth xmlns='${SASL}' mechanism='SCRAM-SHA-256'>${btoa("n,,n=alice,r=abc")}</auth>`,
    `<response xmlns='${SASL}'>${btoa("c=biws,r=abc,p=AAAA")}</response>`,
    `<abort xmlns='${SASL}'/>`,
    "<enable xmlns='urn:xmpp:sm:3' resume='true'/>",
    "<resume xmlns='urn:xmpp:sm:3' h='0' previd='x'/>",
    "<r xmlns='urn:xmpp:sm:3'/>",
    "<a xmlns='urn:xmpp:sm:3' h='4294967295'/>",
    "type='error'",
    "to='a@b@c'",
    "from='eve@example.com'",
    "xmlns='jabber:server'",
  ]);
  readonly #cluster: Cluster;
  readonly #canary: RawClient;
  readonly #watch: NodeWatch;
  #runs = 0;

  private constructor(cluster: Cluster, canary: RawClient) {
    this.#cluster = cluster;
    this.#canary = canary;
    this.#watch = new NodeWatch(cluster.datacenter("dc1"), canary);
  }

  static async start(): Promise<ConversationTarget> {
    const cluster = await Cluster.start({ datacenters: 1, components: [] });
    const { port } = cluster.datacenter("dc1").clientAddress("none");
    const canary = await RawClient.login({
      port,
      domain: cluster.globalHost,
      localpart: "carol",
      password: "secret",
    });
    return new ConversationTarget(cluster, canary);
  }

  seeds(): readonly Uint8Array[] {
    return bytesOf([
      HEADER + PLAIN + HEADER + BIND + TALK + END,
      `${HEADER}<auth xmlns='${SASL}' mechanism='SCRAM-SHA-1'>${btoa("n,,n=alice,r=abc")}</auth>` +
      `<abort xmlns='${SASL}'/>${PLAIN}${HEADER}${BIND}${TALK}${END}`,
      `${HEADER}<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>`,
      `${HEADER}${PLAIN}${HEADER}${BIND}<enable xmlns='urn:xmpp:sm:3' resume='true'/>${TALK}` +
      `<r xmlns='urn:xmpp:sm:3'/><a xmlns='urn:xmpp:sm:3' h='1'/>${END}`,
    ]);
  }

  async run(input: Uint8Array): Promise<void> {
    const { port } = this.#cluster.datacenter("dc1").clientAddress("none");
    const socket = await RawSocket.connect({ port });
    try {
      await socket.send(input);
      await socket.send(ENDING);
      await socket.readToEnd(WITHIN_MS);
    } catch (thrown) {
      // The node may hang up before it was sent everything; that is an end too.
      if (!isEndOfConnection(thrown)) throw thrown;
    } finally {
      await socket.close();
    }
    if (++this.#runs % INPUTS_PER_CHECK === 0) await this.#watch.check();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#canary[Symbol.asyncDispose]();
    await this.#cluster[Symbol.asyncDispose]();
  }
}

function isEndOfConnection(thrown: unknown): boolean {
  return thrown instanceof Deno.errors.ConnectionReset || thrown instanceof Deno.errors.BrokenPipe;
}
