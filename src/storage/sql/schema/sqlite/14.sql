-- Multi-User Chat rooms. Keys are the SHA-256 of bare JIDs, except that service_key is that of a
-- room's domain. Texts are UTF-8, and config is JSON. version grows with each change of a room, and
-- last_number with each message. is_listed is 1 for a room that lists show.
CREATE TABLE muc_rooms (
  room_key BLOB NOT NULL PRIMARY KEY,
  service_key BLOB NOT NULL,
  room BLOB NOT NULL,
  config BLOB NOT NULL,
  subject BLOB NOT NULL,
  is_listed INTEGER NOT NULL,
  version INTEGER NOT NULL,
  last_number INTEGER NOT NULL
) STRICT;

CREATE INDEX muc_rooms_listed
  ON muc_rooms (service_key, is_listed, room_key);

-- affiliation is 0 for an outcast, 1 for a member, 2 for an admin and 3 for an owner.
CREATE TABLE muc_affiliations (
  room_key BLOB NOT NULL,
  user_key BLOB NOT NULL,
  affiliate BLOB NOT NULL,
  affiliation INTEGER NOT NULL,
  reason BLOB NOT NULL,
  PRIMARY KEY (room_key, user_key)
) STRICT;

CREATE INDEX muc_affiliations_by_user
  ON muc_affiliations (user_key, room_key);

-- The last messages of rooms. message_key is the SHA-256 of message_id, and sent_at is in Unix
-- milliseconds.
CREATE TABLE muc_messages (
  room_key BLOB NOT NULL,
  number INTEGER NOT NULL,
  message_key BLOB NOT NULL,
  message_id BLOB NOT NULL,
  sent_at INTEGER NOT NULL,
  stanza BLOB NOT NULL,
  PRIMARY KEY (room_key, number)
) STRICT;

CREATE UNIQUE INDEX muc_messages_by_id
  ON muc_messages (room_key, message_key);
