import type { BenchOptions, BenchRow } from "../bench_options.ts";
import { measureLogin } from "./login_measurement.ts";
import { withPeopleCluster } from "./people_cluster.ts";
import type { PeopleFigures } from "./people_report.ts";
import { measureRoster } from "./roster_measurement.ts";
import { measureStorm } from "./storm_measurement.ts";

/**
 * Measures those of the rows for rosters and logins that the options name.
 * @param begin called before each of them
 */
export async function measurePeople(
  options: BenchOptions,
  progress: (text: string) => void,
  begin: (row: BenchRow) => void,
): Promise<PeopleFigures> {
  const measured = async <Figures>(row: BenchRow, measure: () => Promise<Figures>) => {
    if (!options.rows.has(row)) return undefined;
    begin(row);
    return await measure();
  };
  return {
    roster: await measured(
      "roster",
      () => withPeopleCluster({}, (people) => measureRoster(people, options, progress)),
    ),
    login: await measured("login", () =>
      withPeopleCluster(
        { isCounting: true },
        (people) => measureLogin(people, options, progress),
      )),
    storm: await measured("storm", () =>
      withPeopleCluster(
        { isInspected: true, sessionRate: options.sessionRate },
        (people) => measureStorm(people, options, progress),
      )),
  };
}
