-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Privacy lists, with the version of all lists of an account and the name of its default list.
-- account_key is the SHA-256 of the bare JID, list_key that of the name of the list. Names and
-- contents are UTF-8.
CREATE TABLE IF NOT EXISTS privacy (
  account_key BINARY(32) NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL,
  default_list BLOB
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS privacy_lists (
  account_key BINARY(32) NOT NULL,
  list_key BINARY(32) NOT NULL,
  name BLOB NOT NULL,
  content LONGBLOB NOT NULL,
  PRIMARY KEY (account_key, list_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
