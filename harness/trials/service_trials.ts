import { causewayCommand, PROJECT_DIRECTORY, runProgram } from "../process/mod.ts";
import { PATIENCE_MS } from "../until.ts";
import type { Trial } from "./trial.ts";

export const REDIS_LOST: Trial = {
  name: "redis-lost",
  summary: "the Redis of one datacenter is killed and comes back empty, another's is flushed",
  answers: "some",
  async run(stage) {
    const dc1 = stage.cluster.datacenter("dc1");
    const dc2 = stage.cluster.datacenter("dc2");
    await stage.during(async () => {
      const before = Number(await dc1.redisClient.call("DBSIZE"));
      await dc1.redis.stop();
      stage.prove("killed Redis that held data", before > 0 && !dc1.redis.isRunning ? 1 : 0);
      await stage.pass(stage.faultMs / 3);
      await dc1.redis.start();
      await stage.pass(stage.faultMs / 6);
      const held = Number(await dc2.redisClient.call("DBSIZE"));
      await dc2.redisClient.call("FLUSHALL");
      stage.prove("flushed Redis that held data", held > 0 ? 1 : 0);
      await stage.pass(stage.faultMs / 6);
    }, { afterMs: 2_000 });
    await stage.untilReady();
    await stage.pass(stage.faultMs / 3);
  },
};

/** Bytes of the file system that is too small. */
const SMALL_BYTES = 1_048_576;
const PASSWORD_FILE = "password";

export const DISK_FULL: Trial = {
  name: "disk-full",
  summary: "the file system of a node's store is full; logins go on, new accounts are refused",
  answers: "none",
  async obstacle() {
    if (Deno.build.os !== "linux" || Deno.uid() !== 0) return "only root can mount a small disk";
    const mount = await runProgram("mount", ["--version"]);
    return mount?.code === 0 ? undefined : "the program mount is not there, or may not be run";
  },
  async run(stage) {
    const node = stage.node("dc2");
    const directory = stage.cluster.run.path("small-disk");
    await Deno.mkdir(directory);
    // The node gets a copy of the database: nobody else would see a roster that is changed there.
    await stage.load.side?.avoid(node.name, PATIENCE_MS);
    await stage.stop(node);
    const unmount = ["umount", directory];
    stage.cluster.run.guardWith(unmount);
    await succeed("mount", ["-t", "tmpfs", "-o", `size=${SMALL_BYTES}`, "tmpfs", directory]);
    try {
      const small = `${directory}/users.sqlite`;
      await Deno.copyFile(node.configuration.storage.internal.path, small);
      node.configuration.storage.internal.path = small;
      await stage.start(node);
      await stage.untilEveryoneIsOnline();
      const filler = `${directory}/filler`;
      stage.prove("full disks", await fill(filler) ? 1 : 0);
      const refused = await addUser("late1", { configFile: node.configFile, stage });
      if (refused.code === 0) throw new Error("Expected a full disk to refuse a new account");
      stage.say(`a new account: ${refused.errors.trim()}`);
      stage.prove("accounts refused for want of space");
      for (const client of stage.load.clients) {
        // whoever belongs to the node loses it and comes back: accounts are still read
        if (client.home.name !== node.name || client.isManaged) continue;
        const { logins } = client.counts;
        await client.cut();
        await stage.cluster.until(() => client.counts.logins > logins, {
          what: `${client.jid} is logged in again`,
        });
        if (client.place?.name === node.name) stage.prove("logins beside a full disk");
      }
      await stage.stop(node);
      await stage.start(node);
      stage.prove("starts beside a full disk");
      await stage.untilEveryoneIsOnline();
      await stage.pass(stage.faultMs / 2);
      await Deno.remove(filler);
      const taken = await addUser("late2", { configFile: node.configFile, stage });
      if (taken.code !== 0) throw new Error(`Expected a new account: ${taken.errors}`);
      await stage.pass(stage.faultMs / 2);
      await stage.stop(node);
    } finally {
      if (node.state !== "stopped") await node.stop();
      await succeed("umount", [directory]);
      stage.cluster.run.unguardWith(unmount);
    }
  },
};

async function succeed(program: string, args: readonly string[]): Promise<void> {
  const outcome = await runProgram(program, args);
  if (outcome?.code !== 0) throw new Error(`Cannot ${program}: ${outcome?.errors}`);
}

/** Writes until nothing more fits; true when it came to that. */
async function fill(path: string): Promise<boolean> {
  using file = await Deno.open(path, { write: true, create: true });
  const block = new Uint8Array(4096);
  for (let written = 0; written <= SMALL_BYTES; written += block.length) {
    try {
      await file.write(block);
    } catch {
      return true; // no space left on device
    }
  }
  return false;
}

async function addUser(
  localpart: string,
  { configFile, stage }: { readonly configFile: string; readonly stage: TrialStageLike },
): Promise<{ readonly code: number; readonly errors: string }> {
  const listFile = stage.cluster.run.path(`${PASSWORD_FILE}-${localpart}.json`);
  const jid = `${localpart}@${stage.cluster.globalHost}`;
  await Deno.writeTextFile(listFile, JSON.stringify({ jid, password: "secret" }) + "\n");
  const { program, args } = causewayCommand(
    ["users", "import", listFile, "--format", "json", "--config", configFile],
  );
  const outcome = await runProgram(program, args, { cwd: PROJECT_DIRECTORY });
  if (outcome === undefined) throw new Error(`Cannot run ${program}`);
  return outcome;
}

/** As much of a stage as an account needs. */
type TrialStageLike = Pick<Parameters<Trial["run"]>[0], "cluster">;
