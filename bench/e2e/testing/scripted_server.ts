import { Buffer } from "node:buffer";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer } from "node:net";
import type { ClientPlan } from "../load_protocol.ts";

const HEADER = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' id='s' version='1.0' " +
  "xmlns:stream='http://etherx.jabber.org/streams'><stream:features/></stream:features>";

/** Lets anybody in who logs in as `RawClient` does; what they send after that is the test's to answer. */
export class ScriptedServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Map<string, Socket>();
  readonly #sent: (localpart: string, text: string) => void;

  private constructor(sent: (localpart: string, text: string) => void) {
    this.#sent = sent;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** `sent` is told what logged-in clients write. */
  static async start(sent: (localpart: string, text: string) => void): Promise<ScriptedServer> {
    const scripted = new ScriptedServer(sent);
    const { promise, resolve } = Promise.withResolvers<void>();
    scripted.#server.listen(0, "127.0.0.1", resolve);
    await promise;
    return scripted;
  }

  plan(localpart: string): ClientPlan {
    const { port } = this.#server.address() as AddressInfo; // it listens on TCP
    const account = { domain: "example.com", localpart, password: "secret", resource: "r" };
    return { host: "127.0.0.1", port, ...account };
  }

  write(localpart: string, text: string): void {
    this.#sockets.get(localpart)?.write(text);
  }

  /** Closes the connection of a client. */
  end(localpart: string): void {
    this.#sockets.get(localpart)?.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    for (const socket of this.#sockets.values()) socket.destroy();
    await promise;
  }

  #serve(socket: Socket): void {
    let localpart = "";
    socket.on("error", () => {}); // clients that a test cuts off
    socket.on("data", (data: Buffer) => {
      const text = data.toString();
      if (text.startsWith("<?xml")) socket.write(HEADER);
      else if (text.startsWith("<auth")) {
        const response = Buffer.from(/>([^<]*)</.exec(text)?.[1] ?? "", "base64").toString();
        localpart = response.split("\0")[1] ?? "";
        socket.write("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>");
      } else if (text.includes("<bind ")) {
        this.#sockets.set(localpart, socket);
        socket.write(`<iq type='result'><bind><jid>${localpart}@example.com/r</jid></bind></iq>`);
      } else if (text === "<presence/>") {
        socket.write(`<presence from='${localpart}@example.com/r'/>`);
      } else this.#sent(localpart, text);
    });
  }
}
