-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- MUC Light rooms. Keys are the SHA-256 of bare JIDs, except that service_key is that of a room's
-- domain. Texts are UTF-8, and config is JSON. version grows with each change of a room, and
-- last_number with each message.
CREATE TABLE IF NOT EXISTS muc_light_rooms (
  room_key BINARY(32) NOT NULL PRIMARY KEY,
  room BLOB NOT NULL,
  config BLOB NOT NULL,
  version BIGINT NOT NULL,
  last_number BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- affiliation is 1 for an owner and 0 for a member. joined is the room's version with which the
-- occupant came.
CREATE TABLE IF NOT EXISTS muc_light_occupants (
  room_key BINARY(32) NOT NULL,
  user_key BINARY(32) NOT NULL,
  service_key BINARY(32) NOT NULL,
  occupant BLOB NOT NULL,
  affiliation INTEGER NOT NULL,
  joined BIGINT NOT NULL,
  PRIMARY KEY (room_key, user_key),
  INDEX muc_light_occupants_by_user (user_key, service_key, room_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- Rooms and people that may not add a user to a room. is_room is 1 for a room.
CREATE TABLE IF NOT EXISTS muc_light_blocks (
  user_key BINARY(32) NOT NULL,
  service_key BINARY(32) NOT NULL,
  blocked_key BINARY(32) NOT NULL,
  is_room INTEGER NOT NULL,
  blocked BLOB NOT NULL,
  PRIMARY KEY (user_key, service_key, blocked_key, is_room)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
