-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Archives of rooms. archived_number is the number up to which a room's archive has its messages, and
-- created tells a room from an earlier one of its name. Rooms of earlier versions have 0 there.
ALTER TABLE muc_rooms
  ADD COLUMN created BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN archived_number BIGINT NOT NULL DEFAULT 0;

ALTER TABLE muc_light_rooms
  ADD COLUMN created BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN archived_number BIGINT NOT NULL DEFAULT 0;

-- sender is the real bare JID of a message's sender.
ALTER TABLE muc_messages ADD COLUMN sender BLOB;

-- Messages of MUC Light rooms that the archive may lack, and the last ones that it has. As muc_messages.
CREATE TABLE IF NOT EXISTS muc_light_messages (
  room_key BINARY(32) NOT NULL,
  number BIGINT NOT NULL,
  message_key BINARY(32) NOT NULL,
  message_id BLOB NOT NULL,
  sent_at BIGINT NOT NULL,
  sender BLOB,
  stanza MEDIUMBLOB NOT NULL,
  PRIMARY KEY (room_key, number),
  UNIQUE INDEX muc_light_messages_by_id (room_key, message_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
