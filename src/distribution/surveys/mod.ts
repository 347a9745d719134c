export type { NodeReport, OwnFlow, ReportedLinks, SurveysDeps } from "./surveys.ts";
export { MAX_REPORT_AGE_MS, Surveys } from "./surveys.ts";
