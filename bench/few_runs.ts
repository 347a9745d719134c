/**
 * Runs each bench a handful of times: `deno task bench --preload=bench/few_runs.ts`. That shows that
 * they still run, in a third of the time; the figures mean nothing.
 */
const register = Deno.bench as (definition: Deno.BenchDefinition) => void;

/** Registers a bench in any of its forms: name, options and function, or some of these. */
function benchFewTimes(...args: readonly unknown[]): void {
  const definition = { n: 5, warmup: 1 };
  for (const each of args) {
    if (typeof each === "string") Object.assign(definition, { name: each });
    else if (typeof each === "function") Object.assign(definition, { fn: each });
    else Object.assign(definition, each);
  }
  register(definition as unknown as Deno.BenchDefinition);
}

Object.defineProperty(Deno, "bench", { value: benchFewTimes });
