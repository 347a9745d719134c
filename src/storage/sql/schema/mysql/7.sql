-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Personal eventing (XEP-0163). account_key is the SHA-256 of the bare JID, node_key that of the
-- node's name and item_key that of the item's id. Names, ids and contents are UTF-8. A node's version
-- grows with each change; an item's sequence is the version that it came with.
CREATE TABLE IF NOT EXISTS pep_nodes (
  account_key BINARY(32) NOT NULL,
  node_key BINARY(32) NOT NULL,
  node BLOB NOT NULL,
  config BLOB NOT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (account_key, node_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS pep_items (
  account_key BINARY(32) NOT NULL,
  node_key BINARY(32) NOT NULL,
  item_key BINARY(32) NOT NULL,
  item BLOB NOT NULL,
  sequence BIGINT NOT NULL,
  published_at BIGINT NOT NULL,
  content LONGBLOB NOT NULL,
  content_bytes INTEGER NOT NULL,
  PRIMARY KEY (account_key, node_key, item_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
