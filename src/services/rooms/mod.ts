export { archiveFeatures } from "./archive_disco.ts";
export { RoomArchives } from "./room_archives.ts";
export type { RoomArchiveOptions, RoomArchiveRequest, RoomArchivesDeps } from "./room_archives.ts";
export { namesRoom } from "./room_address.ts";
export { readRoomPage, RESULT_SET } from "./room_page.ts";
export { ROOM_IDS } from "./room_ids.ts";
export {
  isOverloaded,
  isStorageFailure,
  mayBeDone,
  RoomIntake,
  roomMessageId,
} from "./room_intake.ts";
export type { RoomStanza } from "./room_intake.ts";
