/**
 * One page of a list of rooms. It begins behind the room `after`, or ends ahead of the room `before`. With
 * `isLast` it ends with the last room.
 */
export interface RoomListPage {
  readonly limit: number;
  readonly after?: string;
  readonly before?: string;
  readonly isLast?: boolean;
}
