-- MUC Light rooms. Keys are the SHA-256 of bare JIDs, except that service_key is that of a room's
-- domain. Texts are UTF-8, and config is JSON. version grows with each change of a room, and
-- last_number with each message.
CREATE TABLE muc_light_rooms (
  room_key BLOB NOT NULL PRIMARY KEY,
  room BLOB NOT NULL,
  config BLOB NOT NULL,
  version INTEGER NOT NULL,
  last_number INTEGER NOT NULL
) STRICT;

-- affiliation is 1 for an owner and 0 for a member. joined is the room's version with which the
-- occupant came.
CREATE TABLE muc_light_occupants (
  room_key BLOB NOT NULL,
  user_key BLOB NOT NULL,
  service_key BLOB NOT NULL,
  occupant BLOB NOT NULL,
  affiliation INTEGER NOT NULL,
  joined INTEGER NOT NULL,
  PRIMARY KEY (room_key, user_key)
) STRICT;

CREATE INDEX muc_light_occupants_by_user
  ON muc_light_occupants (user_key, service_key, room_key);

-- Rooms and people that may not add a user to a room. is_room is 1 for a room.
CREATE TABLE muc_light_blocks (
  user_key BLOB NOT NULL,
  service_key BLOB NOT NULL,
  blocked_key BLOB NOT NULL,
  is_room INTEGER NOT NULL,
  blocked BLOB NOT NULL,
  PRIMARY KEY (user_key, service_key, blocked_key, is_room)
) STRICT;
