-- Messages that wait for their recipient. account_key and sender_key are the SHA-256 of JIDs. Times
-- are milliseconds since 1970. claimed_by is the claim of a node that delivers the message, until
-- claimed_until.
CREATE TABLE offline_messages (
  account_key BLOB NOT NULL,
  sequence INTEGER NOT NULL,
  sender_key BLOB NOT NULL,
  stanza BLOB NOT NULL,
  stanza_bytes INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  claimed_by BLOB NOT NULL,
  claimed_until INTEGER NOT NULL,
  PRIMARY KEY (account_key, sequence)
) STRICT;

CREATE INDEX offline_messages_by_expiry ON offline_messages (expires_at);

-- Fields of vCards by which people are found. host_key is the SHA-256 of the domain; value is the
-- normalised text, shown the text as it is shown, both cut. field and visibility are explained in
-- vcard_search.ts.
CREATE TABLE vcard_search (
  account_key BLOB NOT NULL,
  field INTEGER NOT NULL,
  host_key BLOB NOT NULL,
  value BLOB NOT NULL,
  shown BLOB NOT NULL,
  visibility INTEGER NOT NULL,
  PRIMARY KEY (account_key, field)
) STRICT;

CREATE INDEX vcard_search_by_value ON vcard_search (host_key, field, value);
