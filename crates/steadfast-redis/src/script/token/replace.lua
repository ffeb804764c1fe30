-- Replaces the record. KEYS[1]: as for `take`. ARGV: the revision that it replaces, the new revision, the record.
-- Returns 1, or 0 if the store holds another revision. Revisions are compared as texts: they may have 20 digits.
if (redis.call('HGET', KEYS[1], 'revision') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'record', ARGV[3])
return 1
