-- Random bytes that an account gets when it is made: one that was deleted and made again has others.
-- Accounts of earlier versions have none.
ALTER TABLE users ADD creation BINARY(16);

-- The row that is read for a name without an account looks like that of an account.
UPDATE users SET creation = CONVERT(BINARY(16), REPLICATE('00', 16), 2)
  WHERE account_key = CONVERT(BINARY(32), REPLICATE('ff', 32), 2);

-- Those who want to be found, and those who do not mind, each in the order of an answer.
DROP INDEX vcard_search_by_value ON vcard_search;

CREATE INDEX vcard_search_by_value
  ON vcard_search (host_key, field, visibility, value, account_key);
