-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Multi-User Chat rooms. Keys are the SHA-256 of bare JIDs, except that service_key is that of a
-- room's domain. Texts are UTF-8, and config is JSON. version grows with each change of a room, and
-- last_number with each message. is_listed is 1 for a room that lists show.
CREATE TABLE IF NOT EXISTS muc_rooms (
  room_key BINARY(32) NOT NULL PRIMARY KEY,
  service_key BINARY(32) NOT NULL,
  room BLOB NOT NULL,
  config MEDIUMBLOB NOT NULL,
  subject MEDIUMBLOB NOT NULL,
  is_listed INTEGER NOT NULL,
  version BIGINT NOT NULL,
  last_number BIGINT NOT NULL,
  INDEX muc_rooms_listed (service_key, is_listed, room_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- affiliation is 0 for an outcast, 1 for a member, 2 for an admin and 3 for an owner.
CREATE TABLE IF NOT EXISTS muc_affiliations (
  room_key BINARY(32) NOT NULL,
  user_key BINARY(32) NOT NULL,
  affiliate BLOB NOT NULL,
  affiliation INTEGER NOT NULL,
  reason BLOB NOT NULL,
  PRIMARY KEY (room_key, user_key),
  INDEX muc_affiliations_by_user (user_key, room_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- The last messages of rooms. message_key is the SHA-256 of message_id, and sent_at is in Unix
-- milliseconds.
CREATE TABLE IF NOT EXISTS muc_messages (
  room_key BINARY(32) NOT NULL,
  number BIGINT NOT NULL,
  message_key BINARY(32) NOT NULL,
  message_id BLOB NOT NULL,
  sent_at BIGINT NOT NULL,
  stanza MEDIUMBLOB NOT NULL,
  PRIMARY KEY (room_key, number),
  UNIQUE INDEX muc_messages_by_id (room_key, message_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
