import { createHash } from "node:crypto";
import { RawSocket } from "../../clients/mod.ts";
import { readSeeds } from "../corpus.ts";
import { bytesOf } from "../fuzz_target.ts";
import { EdgeTarget } from "./edge_target.ts";

const DOMAIN = "echo.example.com";
const SECRET = "secret";

const HEADER = `<?xml version='1.0'?><stream:stream to='${DOMAIN}' ` +
  "xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'>";
const END = "</stream:stream>";

/**
 * Beginning of inputs that are sent from the first byte on. All other inputs follow a handshake.
 */
const FROM_THE_FIRST = "<?xml";

/** The port for components (XEP-0114): its handshake, and what comes behind it. */
export function startComponent(): Promise<EdgeTarget> {
  return EdgeTarget.start({
    name: "component",
    tokens: bytesOf([
      ..."<>/='\"&;!? \0é😀",
      HEADER,
      END,
      "<handshake/>",
      `<handshake>${"0".repeat(40)}</handshake>`,
      `from='${DOMAIN}'`,
      "from='alice@example.com'",
      "from='example.com'",
      "to='a@b@c'",
      "type='error'",
      "xmlns='jabber:client'",
      " xmlns:p='urn:p'",
    ]),
    seeds: readSeeds("component"),
    async open(cluster, input) {
      const { port } = cluster.datacenter("dc1").componentAddress();
      const socket = await RawSocket.connect({ port });
      const start = new TextDecoder().decode(input.subarray(0, FROM_THE_FIRST.length));
      return start === FROM_THE_FIRST ? socket : await shakeHands(socket);
    },
    ending: new TextEncoder().encode("?>]]>'>\"><!DOCTYPE x>"),
  });
}

async function shakeHands(socket: RawSocket): Promise<RawSocket> {
  try {
    await socket.send(HEADER);
    const id = /id=['"]([^'"]+)/.exec(await socket.readUntil("id=") + await socket.readUntil(">"));
    const digest = createHash("sha1").update(`${id?.[1]}${SECRET}`).digest("hex");
    await socket.send(`<handshake>${digest}</handshake>`);
    await socket.readUntil("<handshake/>");
    return socket;
  } catch (thrown) {
    await socket.close();
    throw thrown;
  }
}
