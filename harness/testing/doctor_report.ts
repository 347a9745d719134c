import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { main } from "../../mod.ts";
import type { DoctorFinding } from "../../src/doctor/mod.ts";
import type { TlsFiles } from "../../src/net/mod.ts";
import type { TestAuthority } from "../../src/net/testing/certificates.ts";

/** Outcome of `causeway doctor --json`. */
export interface DoctorReport {
  readonly code: number;
  readonly out: string;
  readonly findings: readonly DoctorFinding[];
}

/** Runs `causeway doctor --json` in this process. */
export async function doctor(args: readonly string[]): Promise<DoctorReport> {
  const lines: string[] = [];
  const code = await main(["doctor", ...args, "--json"], {
    out: (line) => lines.push(line),
    error: (line) => lines.push(line),
    readInput: () => Promise.resolve(""),
    readPassword: () => Promise.resolve(""),
  });
  return reportOf(code, lines.join("\n"));
}

/** Reads what `causeway doctor --json` has printed. */
export function reportOf(code: number, out: string): DoctorReport {
  const { findings } = JSON.parse(out) as { readonly findings: readonly DoctorFinding[] };
  return { code, out, findings };
}

/** Returns a function that fails unless a finding of this check is among `findings`. */
export function naming(findings: readonly DoctorFinding[]) {
  return (check: string, about: RegExp, found: RegExp) =>
    assert.ok(
      findings.some((each) =>
        each.check === check && about.test(each.about) && found.test(each.found)
      ),
      `${check} of ${about}: ${found}\n${JSON.stringify(findings, null, 1)}`,
    );
}

/** Servers on loopback that are right or wrong in one way each. */
export class Servers implements AsyncDisposable {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  /**
   * A TLS server with this certificate that accepts clients with certificates of `accepts`. Calls
   * `secured` for each.
   */
  secure(
    files: Required<TlsFiles>,
    accepts?: TestAuthority,
    secured: () => void = () => {},
  ): Promise<number> {
    const server = createTlsServer({
      cert: readFileSync(files.certfile),
      key: readFileSync(files.keyfile),
      ca: readFileSync(accepts?.cafile ?? files.cafile),
      requestCert: true,
      rejectUnauthorized: true,
      minVersion: "TLSv1.3",
    }, (socket) => {
      socket.on("error", () => {}); // the doctor hangs up as it likes
      socket.resume();
      secured();
    });
    server.on("tlsClientError", () => {});
    return this.#listen(server);
  }

  /** A port that leads to a Unix socket. */
  relay(path: string): Promise<number> {
    return this.#listen(createServer((socket) => {
      const inner = connect(path);
      for (const each of [socket, inner]) each.on("error", () => {}); // `close` follows
      socket.on("close", () => inner.destroy()).pipe(inner);
      inner.on("close", () => socket.destroy()).pipe(socket);
    }));
  }

  /** A server that knows nothing of TLS. */
  plain(): Promise<number> {
    return this.#listen(createServer((socket) => {
      socket.on("error", () => {});
      socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
    }));
  }

  /** A port where nobody listens: its server has closed. */
  async nobody(): Promise<number> {
    return await this.freePort();
  }

  async freePort(): Promise<number> {
    const server = createServer();
    const port = await this.#listen(server);
    this.#servers.pop();
    await new Promise((resolve) => server.close(resolve));
    return port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(
      this.#servers.map((server) => new Promise((resolve) => server.close(resolve))),
    );
  }

  #listen(server: Server): Promise<number> {
    this.#servers.push(server);
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    return new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    });
  }
}
