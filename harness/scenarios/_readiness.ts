import type { Cluster, Datacenter } from "../cluster/mod.ts";

/** Returns the answer of `/ready`. */
export async function readiness(
  datacenter: Datacenter,
): Promise<{ readonly status: number; readonly reasons: readonly string[] }> {
  const response = await fetch(datacenter.adminUrl("/ready"));
  const { reasons } = await response.json() as { readonly reasons: readonly string[] };
  return { status: response.status, reasons };
}

/** Waits until `/ready` says 200, or says 503 with a reason that fits. */
export async function untilReady(
  cluster: Cluster,
  datacenter: Datacenter,
  reason?: RegExp,
  { withinMs }: { readonly withinMs?: number } = {},
): Promise<void> {
  let seen = "";
  await cluster.until(async () => {
    const now = await readiness(datacenter);
    seen = JSON.stringify(now);
    if (reason === undefined) return now.status === 200;
    return now.status === 503 && now.reasons.some((each) => reason.test(each));
  }, {
    what: `/ready of ${datacenter.name} says ${reason === undefined ? 200 : `503 ${reason}`}`,
    evidence: () => `it says ${seen}`,
    ...(withinMs !== undefined && { withinMs }),
  });
}
