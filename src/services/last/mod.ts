export type { LastActivityDeps } from "./last_activity.ts";
export { LastActivity } from "./last_activity.ts";
export { LogoutNotes } from "./logout_notes.ts";
