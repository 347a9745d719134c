import process from "node:process";
import type { Config } from "../config/mod.ts";
import { loadConfig } from "../config/mod.ts";
import { SystemClock } from "../base/mod.ts";
import { createLogger } from "../observe/mod.ts";
import { CausewayNode } from "./causeway_node.ts";
import { ServiceManager, watch } from "./service_manager.ts";
import { StopRequests } from "./stop_requests.ts";
import { openStores } from "./stores.ts";

/** Exit code when another process has taken this node's name, as for a mistake in configuration. */
const SUPERSEDED = 2;

/**
 * Runs one node until SIGTERM or SIGINT and returns the exit code. When the node is ready, prints
 * one line on standard output: `ready ` and the addresses as JSON. SIGHUP reads the configuration and
 * the certificates again.
 * Under systemd it reports both, its stop, and that it makes progress (sd_notify(3)).
 * A second SIGTERM or SIGINT, half a second or more after the first, ends the process at once.
 * @throws CausewayError when the node cannot start
 */
export async function runNode(config: Config): Promise<number> {
  const log = createLogger(config.log);
  for (const { path, text } of config.notes) log.warn("config.note", { path, text });
  const ended = Promise.withResolvers<number>();
  const node = new CausewayNode(config, {
    ...await openStores(config, log),
    log,
    readConfig: () => loadConfig(config.file),
    changeLog: createLogger, // it changes the logger that it returned before
    superseded: () => {
      node.log.error("node.superseded", {
        node: config.nodeName,
        why: "a newer process has taken this node's name",
      });
      ended.resolve(SUPERSEDED);
    },
    stopRequested: () => {
      node.log.info("node.stopping", { why: "an operator asked for it" });
      ended.resolve(0);
    },
  });
  const clock = new SystemClock();
  const watchdogUs = Deno.env.get("WATCHDOG_USEC");
  await using manager = ServiceManager.open({
    socket: Deno.env.get("NOTIFY_SOCKET"),
    directory: Deno.env.get("RUNTIME_DIRECTORY"),
  }, (error) => log.warn("service-manager.untold", { error }));
  const requests = new StopRequests(clock);
  const stop = (signal: string) => {
    const request = requests.heard();
    if (request === "echo") return;
    if (request === "at-once") {
      log.warn("node.stopped-at-once", { signal });
      process.exit(1);
    }
    node.log.info("node.stopping", { signal });
    ended.resolve(0);
  };
  const onTerm = () => stop("SIGTERM");
  const onInt = () => stop("SIGINT");
  const onHangUp = () => {
    manager.reloading();
    node.reload().catch(() => {}) // the node has logged why
      .finally(() => manager.ready());
  };
  process.on("SIGTERM", onTerm);
  process.on("SIGINT", onInt);
  process.on("SIGHUP", onHangUp);
  try {
    const addresses = await Promise.race([node.start(), ended.promise]);
    if (typeof addresses === "object") {
      console.log(`ready ${JSON.stringify(addresses)}`);
      node.log.info("node.ready", { ...addresses });
      manager.ready();
    }
    const unwatch = watch({
      clock,
      watchdogUs,
      rounds: () => node.rounds,
      alive: () => manager.alive(),
    });
    const exitCode = await ended.promise;
    manager.stopping();
    unwatch();
    await node.stop();
    log.info("node.stopped", { exitCode });
    return exitCode;
  } catch (error) {
    await node.stop();
    throw error;
  } finally {
    process.off("SIGTERM", onTerm);
    process.off("SIGINT", onInt);
    process.off("SIGHUP", onHangUp);
  }
}
