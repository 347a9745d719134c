-- Messages that wait for their recipient. account_key and sender_key are the SHA-256 of JIDs. Times
-- are milliseconds since 1970. claimed_by is the claim of a node that delivers the message, until
-- claimed_until.
CREATE TABLE offline_messages (
  account_key BINARY(32) NOT NULL,
  sequence BIGINT NOT NULL,
  sender_key BINARY(32) NOT NULL,
  stanza VARBINARY(MAX) NOT NULL,
  stanza_bytes INT NOT NULL,
  sent_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  claimed_by BINARY(16) NOT NULL,
  claimed_until BIGINT NOT NULL,
  PRIMARY KEY (account_key, sequence)
);

CREATE INDEX offline_messages_by_expiry ON offline_messages (expires_at);

-- Fields of vCards by which people are found. host_key is the SHA-256 of the domain; value is the
-- normalised text, shown the text as it is shown, both cut. field and visibility are explained in
-- vcard_search.ts.
CREATE TABLE vcard_search (
  account_key BINARY(32) NOT NULL,
  field INT NOT NULL,
  host_key BINARY(32) NOT NULL,
  value VARBINARY(255) NOT NULL,
  shown VARBINARY(255) NOT NULL,
  visibility INT NOT NULL,
  PRIMARY KEY (account_key, field)
);

CREATE INDEX vcard_search_by_value ON vcard_search (host_key, field, value);
