-- Archives of rooms. archived_number is the number up to which a room's archive has its messages, and
-- created tells a room from an earlier one of its name. Rooms of earlier versions have 0 there.
ALTER TABLE muc_rooms ADD COLUMN created BIGINT NOT NULL DEFAULT 0;

ALTER TABLE muc_rooms ADD COLUMN archived_number BIGINT NOT NULL DEFAULT 0;

ALTER TABLE muc_light_rooms ADD COLUMN created BIGINT NOT NULL DEFAULT 0;

ALTER TABLE muc_light_rooms ADD COLUMN archived_number BIGINT NOT NULL DEFAULT 0;

-- sender is the real bare JID of a message's sender.
ALTER TABLE muc_messages ADD COLUMN sender BYTEA;

-- Messages of MUC Light rooms that the archive may lack, and the last ones that it has. As muc_messages.
CREATE TABLE muc_light_messages (
  room_key BYTEA NOT NULL,
  number BIGINT NOT NULL,
  message_key BYTEA NOT NULL,
  message_id BYTEA NOT NULL,
  sent_at BIGINT NOT NULL,
  sender BYTEA,
  stanza BYTEA NOT NULL,
  PRIMARY KEY (room_key, number)
);

CREATE UNIQUE INDEX muc_light_messages_by_id
  ON muc_light_messages (room_key, message_key);
