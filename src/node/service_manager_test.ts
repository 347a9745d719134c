import assert from "node:assert/strict";
import { join } from "node:path";
import { ManualClock } from "../base/mod.ts";
import { ServiceManager, watch } from "./service_manager.ts";

Deno.test("ServiceManager tells systemd's socket what the node does, and cleans up", async () => {
  const directory = await Deno.makeTempDir({ prefix: "cw-", dir: "/tmp" });
  const socket = join(directory, "notify");
  const systemd = Deno.listenDatagram({ transport: "unixpacket", path: socket });
  const failures: unknown[] = [];
  const environment = { socket, directory };
  {
    await using manager = ServiceManager.open(environment, (error) => failures.push(error));
    manager.ready();
    manager.reloading();
    manager.alive();
    manager.stopping();
    manager.reloading(); // a reload does not undo the stop
    manager.ready();
    manager.alive();
    const heard: string[] = [];
    while (heard.length < 5) heard.push(new TextDecoder().decode((await systemd.receive())[0]));
    assert.deepEqual(heard, ["READY=1", "RELOADING=1", "WATCHDOG=1", "STOPPING=1", "WATCHDOG=1"]);
  }
  systemd.close();
  assert.deepEqual(Array.from(Deno.readDirSync(directory), ({ name }) => name), ["notify"]);
  assert.deepEqual(failures, []);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("ServiceManager says nothing without systemd, and why it cannot tell one", async () => {
  const failures: string[] = [];
  const open = async (socket: string | undefined, directory?: string) => {
    await using manager = ServiceManager.open(
      { socket, directory },
      (error) => failures.push(String(error)),
    );
    manager.ready();
  };
  await open(undefined);
  assert.deepEqual(failures, []);
  await open("@abstract", "/tmp");
  await open("/run/systemd/notify");
  assert.deepEqual(failures, [
    "TypeError: NOTIFY_SOCKET is no path: @abstract",
    "TypeError: RUNTIME_DIRECTORY is not set",
  ]);
});

Deno.test("watch() reports only while the node's work goes on", () => {
  const clock = new ManualClock();
  let [rounds, reports] = [0, 0];
  const options = { clock, rounds: () => rounds, alive: () => reports++ };
  const cancel = watch({ ...options, watchdogUs: "30000000" });
  rounds++;
  clock.advance(15_000);
  assert.equal(reports, 1);
  clock.advance(60_000);
  assert.equal(reports, 1, "nothing was done since");
  rounds++;
  clock.advance(15_000);
  assert.equal(reports, 2);
  cancel();
  rounds++;
  clock.advance(60_000);
  assert.equal(reports, 2);
  watch({ ...options, watchdogUs: undefined })();
  watch({ ...options, watchdogUs: "" })();
  clock.advance(60_000);
  assert.equal(reports, 2);
});
