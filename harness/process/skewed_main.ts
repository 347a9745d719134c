/**
 * The `causeway` command on a machine whose clock is wrong: the first argument says by how many
 * milliseconds it is ahead. Only the wall clock is shifted. Durations stay right.
 */
import { main } from "../../mod.ts";

const aheadMs = Number(Deno.args[0]);
if (!Number.isSafeInteger(aheadMs)) throw new RangeError(`Not milliseconds: ${Deno.args[0]}`);

const { now } = Date;
Date.now = () => now() + aheadMs;
Object.defineProperty(performance, "timeOrigin", { value: performance.timeOrigin + aheadMs });

Deno.exit(await main(Deno.args.slice(1)));
