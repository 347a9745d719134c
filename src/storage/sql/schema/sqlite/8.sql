-- Personal eventing (XEP-0163). account_key is the SHA-256 of the bare JID, node_key that of the
-- node's name and item_key that of the item's id. Names, ids and contents are UTF-8. A node's version
-- grows with each change; an item's sequence is the version that it came with.
CREATE TABLE pep_nodes (
  account_key BLOB NOT NULL,
  node_key BLOB NOT NULL,
  node BLOB NOT NULL,
  config BLOB NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (account_key, node_key)
) STRICT;

CREATE TABLE pep_items (
  account_key BLOB NOT NULL,
  node_key BLOB NOT NULL,
  item_key BLOB NOT NULL,
  item BLOB NOT NULL,
  sequence INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  content BLOB NOT NULL,
  content_bytes INTEGER NOT NULL,
  PRIMARY KEY (account_key, node_key, item_key)
) STRICT;
