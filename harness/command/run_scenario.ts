import { type ClusterOptions, withCluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";

/** Result of a scenario. */
export interface ScenarioResult {
  readonly scenario: string;
  readonly ok: boolean;
  readonly seconds: number;
  /** Lines that the scenario said, in order. */
  readonly seen: readonly string[];
  /** Reason of the failure, with the cluster's logs. */
  readonly error?: string;
}

/** Plays one scenario on a cluster of its own. Never rejects. */
export async function runScenario(
  scenario: Scenario,
  options: ClusterOptions,
  say: (line: string) => void = () => {},
): Promise<ScenarioResult> {
  const startMs = performance.now();
  const seen: string[] = [];
  const result = (ok: boolean) => ({
    scenario: scenario.name,
    ok,
    seconds: Math.round(performance.now() - startMs) / 1000,
    seen,
  });
  try {
    await withCluster(
      { ...scenario.options, ...options },
      (cluster) =>
        scenario.run(cluster, (line) => {
          seen.push(line);
          say(line);
        }),
    );
    return result(true);
  } catch (thrown) {
    return { ...result(false), error: fullMessage(thrown) };
  }
}

/** Errors whose messages are shown. */
const MOST_MESSAGES = 5;

/**
 * The messages of an error and of what caused it. Of two errors, the second one thrown as the first
 * one's resources were given back, the first comes first.
 */
export function fullMessage(thrown: unknown): string {
  const messages: string[] = [];
  const open = [thrown];
  while (open.length > 0 && messages.length < MOST_MESSAGES) {
    const error = open.shift();
    if (error instanceof SuppressedError) open.unshift(error.suppressed, error.error);
    else if (error instanceof Error) {
      messages.push(error.message);
      if (error.cause instanceof Error) open.unshift(error.cause);
    } else messages.push(String(error));
  }
  return messages.join("\n");
}
