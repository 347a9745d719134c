-- Rooms that one person has made. creator_key is the SHA-256 of the bare JID of the one who made a
-- room. Null: a program of an earlier version made it, or the account was removed.
ALTER TABLE muc_rooms ADD COLUMN creator_key BYTEA;

CREATE INDEX muc_rooms_by_creator
  ON muc_rooms (creator_key, service_key);

-- Whoever makes a room first changes the row of its creator, and so waits for others who make rooms in
-- the same name.
CREATE TABLE muc_creators (
  creator_key BYTEA NOT NULL PRIMARY KEY,
  changes BIGINT NOT NULL
);
