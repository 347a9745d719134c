import assert from "node:assert/strict";
import { TestPeer } from "./_test_peer.ts";
import type { Connection } from "./connection.ts";
import { dial } from "./dial.ts";
import { listen } from "./listener.ts";

Deno.test("a listener that probes itself hands over every connection but its own", async () => {
  const accepted: TestPeer[] = [];
  let arrived = Promise.withResolvers<void>();
  const failures: string[] = [];
  const listener = await listen(
    { host: "127.0.0.1", port: 0, limits: { probeIntervalMs: 1 } },
    {
      accepted(connection: Connection) {
        accepted.push(new TestPeer(connection));
        arrived.resolve();
      },
      failed: (error) => failures.push(error.code),
    },
  );
  for (let i = 0; i < 200; i++) {
    arrived = Promise.withResolvers<void>();
    const client = new TestPeer(await dial({ host: "127.0.0.1", port: listener.port }));
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
  await listener.close();
});

// Runs an echo listener under a limit of file descriptors, uses them up, lets go of them, and
// says whether it is served again. Only another process can have another limit.
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
        s = socket.create_connection(("127.0.0.1", port), timeout=20)
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
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            s = open_one()
            s.settimeout(1)
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

Deno.test("a listener that ran out of file descriptors serves again once there are some", async () => {
  const { stdout, stderr } = await new Deno.Command("/usr/bin/python3", {
    args: [
      ...["-c", EXHAUST, Deno.execPath(), "run", "--no-prompt", "--allow-net=127.0.0.1"],
      ...["--allow-env", new URL("./_test_echo_server.ts", import.meta.url).pathname],
    ],
    stdout: "piped",
    stderr: "piped",
  }).output();
  const said = new TextDecoder().decode(stdout);
  assert.equal(said, "served again\n", new TextDecoder().decode(stderr));
});
