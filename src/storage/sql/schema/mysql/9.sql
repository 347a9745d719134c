-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Archives of messages (XEP-0313). account_key is the SHA-256 of the bare JID whose archive it is.
-- last_position and visible_at are those of the newest message; most_late is the longest time from
-- sent_at to visible_at of any. preferences is JSON in UTF-8.
CREATE TABLE IF NOT EXISTS archives (
  account_key BINARY(32) NOT NULL PRIMARY KEY,
  last_position BIGINT NOT NULL,
  visible_at BIGINT NOT NULL,
  most_late BIGINT NOT NULL,
  preferences LONGBLOB
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- position grows in the order in which messages become visible, and visible_at grows with it.
-- process and sequence are the id of the stanza inside Causeway. peer_key is the SHA-256 of the bare
-- JID of the other side, and peer_resource its resource in UTF-8. Times are milliseconds since 1970.
CREATE TABLE IF NOT EXISTS archive_messages (
  account_key BINARY(32) NOT NULL,
  position BIGINT NOT NULL,
  process BIGINT NOT NULL,
  sequence BIGINT NOT NULL,
  peer_key BINARY(32) NOT NULL,
  peer_resource VARBINARY(1023) NOT NULL,
  sent_at BIGINT NOT NULL,
  visible_at BIGINT NOT NULL,
  stanza LONGBLOB NOT NULL,
  PRIMARY KEY (account_key, position),
  UNIQUE INDEX archive_messages_by_id (process, sequence, account_key),
  INDEX archive_messages_by_peer (account_key, peer_key, position),
  INDEX archive_messages_by_time (account_key, visible_at, position)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
