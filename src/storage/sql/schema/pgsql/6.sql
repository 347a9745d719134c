-- Messages that wait for their recipient. account_key and sender_key are the SHA-256 of JIDs. Times
-- are milliseconds since 1970. claimed_by is the claim of a node that delivers the message, until
-- claimed_until.
CREATE TABLE offline_messages (
  account_key BYTEA NOT NULL,
  sequence BIGINT NOT NULL,
  sender_key BYTEA NOT NULL,
  stanza BYTEA NOT NULL,
  stanza_bytes INTEGER NOT NULL,
  sent_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  claimed_by BYTEA NOT NULL,
  claimed_until BIGINT NOT NULL,
  PRIMARY KEY (account_key, sequence)
);

CREATE INDEX offline_messages_by_expiry ON offline_messages (expires_at);

-- Fields of vCards by which people are found. host_key is the SHA-256 of the domain; value is the
-- normalised text, shown the text as it is shown, both cut. field and visibility are explained in
-- vcard_search.ts.
CREATE TABLE vcard_search (
  account_key BYTEA NOT NULL,
  field INTEGER NOT NULL,
  host_key BYTEA NOT NULL,
  value BYTEA NOT NULL,
  shown BYTEA NOT NULL,
  visibility INTEGER NOT NULL,
  PRIMARY KEY (account_key, field)
);

CREATE INDEX vcard_search_by_value ON vcard_search (host_key, field, value);
