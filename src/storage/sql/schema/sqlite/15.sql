-- Archives of rooms. archived_number is the number up to which a room's archive has its messages, and
-- created tells a room from an earlier one of its name. Rooms of earlier versions have 0 there.
ALTER TABLE muc_rooms ADD COLUMN created INTEGER NOT NULL DEFAULT 0;

ALTER TABLE muc_rooms ADD COLUMN archived_number INTEGER NOT NULL DEFAULT 0;

ALTER TABLE muc_light_rooms ADD COLUMN created INTEGER NOT NULL DEFAULT 0;

ALTER TABLE muc_light_rooms ADD COLUMN archived_number INTEGER NOT NULL DEFAULT 0;

-- sender is the real bare JID of a message's sender.
ALTER TABLE muc_messages ADD COLUMN sender BLOB;

-- Messages of MUC Light rooms that the archive may lack, and the last ones that it has. As muc_messages.
CREATE TABLE muc_light_messages (
  room_key BLOB NOT NULL,
  number INTEGER NOT NULL,
  message_key BLOB NOT NULL,
  message_id BLOB NOT NULL,
  sent_at INTEGER NOT NULL,
  sender BLOB,
  stanza BLOB NOT NULL,
  PRIMARY KEY (room_key, number)
) STRICT;

CREATE UNIQUE INDEX muc_light_messages_by_id
  ON muc_light_messages (room_key, message_key);
