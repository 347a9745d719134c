import type { Config } from "../config/mod.ts";
import type { Envelope } from "../distribution/mod.ts";
import type { Router } from "../distribution/routing/mod.ts";
import { RoomServer } from "../services/muc_light/mod.ts";
import type { Stores } from "../storage/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that rooms use. The router is read when they use it. */
export interface RoomParts {
  readonly stores: Stores;
  readonly router: Router;
}

/** Makes the MUC Light rooms of the global host. Undefined where they are off. */
export function makeRooms(
  config: Config,
  parts: Surroundings & RoomParts,
): RoomServer<Envelope> | undefined {
  const { mucLight, globalDistrib } = config;
  if (mucLight === undefined) return undefined;
  const { domain, ...options } = mucLight;
  const store = parts.stores.rooms(globalDistrib.globalHost, domain);
  return new RoomServer({
    services: new Map([[domain, { options, store }]]),
    send: (message, settled) =>
      parts.router.accept(message, settled === undefined ? undefined : { settle: settled }),
    answer: (reply, request) => parts.router.answer(reply, request),
    metrics: parts.metrics,
    logger: parts.log,
    clock: parts.clock,
  });
}
