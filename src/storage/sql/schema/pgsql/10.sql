-- MUC Light rooms. Keys are the SHA-256 of bare JIDs, except that service_key is that of a room's
-- domain. Texts are UTF-8, and config is JSON. version grows with each change of a room, and
-- last_number with each message.
CREATE TABLE muc_light_rooms (
  room_key BYTEA NOT NULL PRIMARY KEY,
  room BYTEA NOT NULL,
  config BYTEA NOT NULL,
  version BIGINT NOT NULL,
  last_number BIGINT NOT NULL
);

-- affiliation is 1 for an owner and 0 for a member. joined is the room's version with which the
-- occupant came.
CREATE TABLE muc_light_occupants (
  room_key BYTEA NOT NULL,
  user_key BYTEA NOT NULL,
  service_key BYTEA NOT NULL,
  occupant BYTEA NOT NULL,
  affiliation INTEGER NOT NULL,
  joined BIGINT NOT NULL,
  PRIMARY KEY (room_key, user_key)
);

CREATE INDEX muc_light_occupants_by_user
  ON muc_light_occupants (user_key, service_key, room_key);

-- Rooms and people that may not add a user to a room. is_room is 1 for a room.
CREATE TABLE muc_light_blocks (
  user_key BYTEA NOT NULL,
  service_key BYTEA NOT NULL,
  blocked_key BYTEA NOT NULL,
  is_room INTEGER NOT NULL,
  blocked BYTEA NOT NULL,
  PRIMARY KEY (user_key, service_key, blocked_key, is_room)
);
