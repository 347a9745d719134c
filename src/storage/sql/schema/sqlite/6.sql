-- Privacy lists, with the version of all lists of an account and the name of its default list.
-- account_key is the SHA-256 of the bare JID, list_key that of the name of the list. Names and
-- contents are UTF-8.
CREATE TABLE privacy (
  account_key BLOB PRIMARY KEY NOT NULL,
  version INTEGER NOT NULL,
  default_list BLOB
) STRICT;

CREATE TABLE privacy_lists (
  account_key BLOB NOT NULL,
  list_key BLOB NOT NULL,
  name BLOB NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (account_key, list_key)
) STRICT;
