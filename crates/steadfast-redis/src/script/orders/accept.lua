-- Takes the journal as it is, as `Ledger::accept` does. KEYS: as for `take`. ARGV: the mark that `take` returned. Returns {1},
-- or {0} if it is not the one that is kept.
local key, journal = KEYS[1], KEYS[2]
if redis.call('HGET', key, 'mark') ~= ARGV[1] then return {0} end
redis.call('HDEL', key, 'mark')
redis.call('HSET', key, 'run', '{run_id}', 'entries', redis.call('XLEN', journal))
redis.call('HSETNX', key, 'counter', 0)
-- An owner that has not heard of the loss may still send, and its last renewals may be lost. So another one takes its place,
-- who never renews, and is waited for.
redis.call('HSET', key, 'owner', ARGV[1], 'name', 'nobody', 'renewals', 0, 'heard', 0)
return {1}
