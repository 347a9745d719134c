export { isStorageFailure, RoomIntake } from "./room_intake.ts";
export type { RoomStanza } from "./room_intake.ts";
