-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- The second time, the column is there already, which is no failure.
-- Random bytes that an account gets when it is made: one that was deleted and made again has others.
-- Accounts of earlier versions have none.
ALTER TABLE users ADD COLUMN creation BINARY(16);

-- The row that is read for a name without an account looks like that of an account.
UPDATE users SET creation = UNHEX(REPEAT('00', 16)) WHERE account_key = UNHEX(REPEAT('ff', 32));

-- Those who want to be found, and those who do not mind, each in the order of an answer.
ALTER TABLE vcard_search
  DROP INDEX vcard_search_by_value,
  ADD INDEX vcard_search_by_value (host_key, field, visibility, value, account_key);
