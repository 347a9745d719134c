-- Privacy lists, with the version of all lists of an account and the name of its default list.
-- account_key is the SHA-256 of the bare JID, list_key that of the name of the list. Names and
-- contents are UTF-8.
CREATE TABLE privacy (
  account_key BYTEA NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL,
  default_list BYTEA
);

CREATE TABLE privacy_lists (
  account_key BYTEA NOT NULL,
  list_key BYTEA NOT NULL,
  name BYTEA NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (account_key, list_key)
);
