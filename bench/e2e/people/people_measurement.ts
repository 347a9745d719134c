import type { BenchOptions } from "../bench_options.ts";
import { measureLogin } from "./login_measurement.ts";
import { withPeopleCluster } from "./people_cluster.ts";
import type { PeopleFigures } from "./people_report.ts";
import { measureRoster } from "./roster_measurement.ts";
import { measureStorm } from "./storm_measurement.ts";

/** Measures those of the rows for rosters and logins that the options name. */
export async function measurePeople(
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<PeopleFigures> {
  const { rows } = options;
  const roster = rows.has("roster")
    ? await withPeopleCluster({}, (people) => measureRoster(people, options, progress))
    : undefined;
  const login = rows.has("login")
    ? await withPeopleCluster(
      { isCounting: true },
      (people) => measureLogin(people, options, progress),
    )
    : undefined;
  const storm = rows.has("storm")
    ? await withPeopleCluster(
      { isInspected: true },
      (people) => measureStorm(people, options, progress),
    )
    : undefined;
  return { roster, login, storm };
}
