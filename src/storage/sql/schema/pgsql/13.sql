-- Multi-User Chat rooms. Keys are the SHA-256 of bare JIDs, except that service_key is that of a
-- room's domain. Texts are UTF-8, and config is JSON. version grows with each change of a room, and
-- last_number with each message. is_listed is 1 for a room that lists show.
CREATE TABLE muc_rooms (
  room_key BYTEA NOT NULL PRIMARY KEY,
  service_key BYTEA NOT NULL,
  room BYTEA NOT NULL,
  config BYTEA NOT NULL,
  subject BYTEA NOT NULL,
  is_listed INTEGER NOT NULL,
  version BIGINT NOT NULL,
  last_number BIGINT NOT NULL
);

CREATE INDEX muc_rooms_listed
  ON muc_rooms (service_key, is_listed, room_key);

-- affiliation is 0 for an outcast, 1 for a member, 2 for an admin and 3 for an owner.
CREATE TABLE muc_affiliations (
  room_key BYTEA NOT NULL,
  user_key BYTEA NOT NULL,
  affiliate BYTEA NOT NULL,
  affiliation INTEGER NOT NULL,
  reason BYTEA NOT NULL,
  PRIMARY KEY (room_key, user_key)
);

CREATE INDEX muc_affiliations_by_user
  ON muc_affiliations (user_key, room_key);

-- The last messages of rooms. message_key is the SHA-256 of message_id, and sent_at is in Unix
-- milliseconds.
CREATE TABLE muc_messages (
  room_key BYTEA NOT NULL,
  number BIGINT NOT NULL,
  message_key BYTEA NOT NULL,
  message_id BYTEA NOT NULL,
  sent_at BIGINT NOT NULL,
  stanza BYTEA NOT NULL,
  PRIMARY KEY (room_key, number)
);

CREATE UNIQUE INDEX muc_messages_by_id
  ON muc_messages (room_key, message_key);
