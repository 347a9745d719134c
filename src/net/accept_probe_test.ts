import assert from "node:assert/strict";
import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:net";
import { TestPeer } from "./testing/peer.ts";
import { AcceptProbe } from "./accept_probe.ts";
import type { Connection } from "./connection.ts";
import { dial } from "./dial.ts";
import { listen } from "./listener.ts";

/** Listening addresses, and the address at which a client reaches each. */
const PLACES = [
  ["127.0.0.1", "127.0.0.1"],
  ["127.0.0.2", "127.0.0.2"],
  ["0.0.0.0", "127.0.0.1"],
  ["0.0.0.0", "127.0.0.2"],
  ["::1", "::1"],
  ["::", "::1"],
  ["::", "127.0.0.1"],
] as const;
for (const [host, reached] of PLACES) {
  Deno.test(`a listener on ${host} that probes itself hands over every connection to ${reached} but its own`, async () => {
    const accepted: TestPeer[] = [];
    let arrived = Promise.withResolvers<void>();
    const failures: string[] = [];
    const refusals: string[] = [];
    const listener = await listen(
      { host, port: 0, limits: { probeIntervalMs: 1 } },
      {
        accepted(connection: Connection) {
          accepted.push(new TestPeer(connection));
          arrived.resolve();
        },
        refused: (error) => refusals.push(error.code),
        failed: (error) => failures.push(error.code),
      },
    );
    for (let i = 0; i < 100; i++) {
      arrived = Promise.withResolvers<void>();
      const client = new TestPeer(await dial({ host: reached, port: listener.port }));
      await arrived.promise;
      const server = accepted.at(-1)!;
      assert.equal(accepted.length, i + 1, "a probe was handed over");
      client.send("mine");
      await server.until((peer) => peer.text === "mine");
      client.connection.close();
      await client.until((peer) => peer.isClosed);
      await server.until((peer) => peer.isClosed);
    }
    assert.deepEqual(failures, []);
    assert.deepEqual(refusals, []);
    await listener.close();
  });
}

/** A server whose connections go to a probe, and a record of the probe's results. */
class ProbedServer implements AsyncDisposable {
  readonly server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  readonly probe: AcceptProbe;
  readonly taken: boolean[] = [];
  readonly passed: Socket[] = [];
  deaths = 0;
  /** Called when a probe begins. */
  begun = (): void => {};
  /** Called with each connection. */
  arrived = (socket: Socket): void => void this.taken.push(this.probe.takes(socket));
  #address: AddressInfo | undefined;

  constructor() {
    this.server.on("connection", (socket) => {
      socket.on("error", () => {}); // the probe may hang up at any time
      this.arrived(socket);
    });
    this.probe = new AcceptProbe({
      intervalMs: 1,
      address: () => {
        this.begun();
        return { host: this.#address!.address, port: this.#address!.port };
      },
      pass: (socket) => this.passed.push(socket),
      dead: () => this.deaths++,
    });
  }

  async start(host: string): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen({ host, port: 0 }, resolve));
    this.#address = this.server.address() as AddressInfo;
    this.probe.start();
  }

  /** Checks every few milliseconds, because nothing else keeps the process alive for a probe's timers. */
  async until(isMet: () => boolean): Promise<void> {
    while (!isMet()) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  async stopAccepting(): Promise<void> {
    await new Promise((resolve) => this.server.close(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.probe.stop();
    for (const socket of this.passed) socket.destroy();
    if (this.server.listening) await this.stopAccepting();
  }
}

for (const host of ["127.0.0.2", "::1", "0.0.0.0", "::"]) {
  Deno.test(`AcceptProbe arms on ${host}, and reports a listener that accepts nothing any more`, async () => {
    await using probed = new ProbedServer();
    await probed.start(host);
    await probed.until(() => probed.taken.length >= 3);
    assert.deepEqual(probed.taken.filter((isOwn) => !isOwn), []);
    await probed.stopAccepting();
    await probed.until(() => probed.deaths > 0);
    assert.deepEqual(probed.passed, []);
  });
}

Deno.test("AcceptProbe knows its own connection in a process that stood still", async () => {
  await using probed = new ProbedServer();
  probed.begun = () => {
    probed.begun = () => {};
    queueMicrotask(() => {
      const endMs = performance.now() + 1100; // longer than a probe may take
      while (performance.now() < endMs);
    });
  };
  await probed.start("127.0.0.2");
  await probed.until(() => probed.taken.length >= 1);
  assert.equal(probed.taken[0], true);
  assert.deepEqual(probed.passed, []);
});

Deno.test("AcceptProbe knows its own connection in a process that gets no processor", async () => {
  await using probed = new ProbedServer();
  let turns = 0;
  const hog = () => {
    const endMs = performance.now() + 150;
    while (performance.now() < endMs);
    if (++turns < 12) setTimeout(hog, 0);
  };
  probed.begun = () => {
    probed.begun = () => {};
    queueMicrotask(hog);
  };
  await probed.start("127.0.0.2");
  await probed.until(() => turns === 12 && probed.taken.length >= 2);
  assert.deepEqual(probed.taken.filter((isOwn) => !isOwn), []);
  assert.deepEqual(probed.passed, []);
});

Deno.test("AcceptProbe knows its own connection when it is accepted after the verdict", async () => {
  await using probed = new ProbedServer();
  const late: Socket[] = [];
  let probes = 0;
  probed.begun = () => probes++;
  probed.arrived = (socket) => late.push(socket);
  await probed.start("127.0.0.2");
  await probed.until(() => probes >= 2 && late.length >= 2);
  assert.equal(probed.probe.takes(late[0]!), true);
  assert.equal(late[0]!.destroyed, true);
  for (const socket of late) socket.destroy();
});

// Runs an echo listener under a limit of file descriptors, uses them up, frees them, and prints whether
// the listener serves again. Only another process can have another limit.
const EXHAUST = `
import resource, socket, subprocess, sys, time
limit = 80
server = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True, stderr=subprocess.STDOUT,
    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
said = []
def line():
    text = server.stdout.readline()
    if not text:
        raise SystemExit("the server ended: " + "".join(said))
    said.append(text)
    return text.strip()
try:
    while not (first := line()).startswith("port "):
        pass
    port = int(first.split()[1])
    def open_one():
        s = socket.create_connection(("127.0.0.1", port), timeout=60)
        s.sendall(b"x")
        return s
    def echoes(s):
        try:
            return s.recv(1) == b"x"
        except OSError:
            return False
    early = open_one()
    assert echoes(early), "no echo at first"
    while line() != "probed":
        pass
    crowd = [open_one() for _ in range(limit + 20)]
    for s in crowd:
        s.close()
    while line() != "failed net/not-accepting":
        pass
    early.sendall(b"x")
    assert echoes(early), "an old connection was lost"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            s = open_one()
            s.settimeout(5)
            if echoes(s):
                print("served again")
                break
        except OSError:
            pass
        time.sleep(0.05)
finally:
    server.kill()
    server.wait()
`;

Deno.test("a listener that ran out of file descriptors serves again once some are free", async () => {
  const { stdout, stderr } = await new Deno.Command("/usr/bin/python3", {
    args: [
      ...["-c", EXHAUST, Deno.execPath(), "run", "--no-prompt", "--allow-net=127.0.0.1"],
      ...["--allow-env", new URL("./testing/echo_server.ts", import.meta.url).pathname],
    ],
    stdout: "piped",
    stderr: "piped",
  }).output();
  const said = new TextDecoder().decode(stdout);
  assert.equal(said, "served again\n", new TextDecoder().decode(stderr));
});
