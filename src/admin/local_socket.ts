import type { Server, Socket } from "node:net";
import { connect, createServer } from "node:net";

/** A Unix socket by which the owner of the process, and root, reach the API without a token. */
export class LocalSocket {
  readonly #path: string;
  readonly #server: Server;

  /** @param enter takes each accepted connection */
  constructor(path: string, enter: (socket: Socket) => void) {
    this.#path = path;
    this.#server = createServer(enter);
  }

  /**
   * Begins to listen. A socket that a dead process has left is replaced. Rejects with the system's
   * error, also while another process listens there.
   */
  async open(): Promise<void> {
    const { isSocket } = await Deno.lstat(this.#path).catch(() => ({ isSocket: false }));
    // Any other file stays, and listening fails.
    if (isSocket === true && !await answers(this.#path)) await Deno.remove(this.#path);
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ path: this.#path }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", () => {}); // a connection that cannot be accepted needs no answer
        resolve();
      });
    });
    await Deno.chmod(this.#path, 0o600);
  }

  /** Stops listening, and removes the file. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await Deno.remove(this.#path).catch(() => {}); // the runtime may have removed it
  }
}

/** True while a process listens at the path. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
