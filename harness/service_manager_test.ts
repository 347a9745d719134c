import assert from "node:assert/strict";
import { join } from "node:path";
import { withCluster } from "./cluster/mod.ts";
import { PROJECT_DIRECTORY } from "./process/mod.ts";

Deno.test("a node tells systemd that it is ready, reloads, makes progress and stops", async () => {
  // A socket's path is short, and a node may write below the project only.
  const directory = await Deno.makeTempDir({ dir: join(PROJECT_DIRECTORY, ".tmp"), prefix: "sd-" });
  const socket = join(directory, "notify");
  const systemd = Deno.listenDatagram({ transport: "unixpacket", path: socket });
  using cleanup = new DisposableStack();
  cleanup.defer(() => systemd.close());
  const heard: string[] = [];
  const expect = async (state: string) => {
    do heard.push(new TextDecoder().decode((await systemd.receive())[0])); while (
      heard.at(-1) !== state
    );
  };
  const env = () => ({
    NOTIFY_SOCKET: socket,
    RUNTIME_DIRECTORY: directory,
    WATCHDOG_USEC: "1000000",
  });
  await withCluster({ datacenters: 1, redis: "local", components: [], env }, async (cluster) => {
    const { node } = cluster.datacenter("dc1");
    await expect("READY=1");
    assert.deepEqual(heard, ["READY=1"], "nothing before");
    await expect("WATCHDOG=1");
    node.signal("SIGHUP");
    await expect("RELOADING=1");
    await expect("READY=1");
    await Promise.all([node.stop(), expect("STOPPING=1")]);
  });
  const names = Array.from(Deno.readDirSync(directory), ({ name }) => name);
  assert.deepEqual(names, ["notify"], "its own socket is gone");
  await Deno.remove(directory, { recursive: true });
});
