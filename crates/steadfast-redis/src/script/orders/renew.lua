-- Renews the lease of the owner, as `Ledger::renew` does. KEYS: as for `take`. ARGV: the fence (counter, owner), how many
-- entries the owner knows to be written, the renewal's number, whether it still counts as the owner, how many turns of the kill
-- switch it has heard of. Returns {1}; {0, name} if it is not the owner; {-1} if the store has lost entries, or another run of
-- it may have lost those of another owner. Behind all of them the turns of the kill switch.
local key, journal, turns = KEYS[1], KEYS[2], redis.call('HGET', KEYS[1], 'turns') or '0'
local kept = redis.call('HMGET', key, 'counter', 'owner', 'entries', 'name', 'run')
if kept[1] ~= ARGV[1] or kept[2] ~= ARGV[2] then return {0, kept[4] or '', turns} end
local entries = tonumber(kept[3])
if entries ~= redis.call('XLEN', journal) or entries < tonumber(ARGV[3]) then return {-1, turns} end
if kept[5] ~= '{run_id}' and ARGV[5] ~= '1' then return {-1, turns} end
-- The owner counts: a store that has lost a renewal would use its number again, and the lease would seem to stand still. If
-- it is another run of the server, that has lost nothing else: there was no other owner.
redis.call('HSET', key, 'run', '{run_id}', 'renewals', ARGV[4], 'heard', ARGV[6])
redis.call('HDEL', key, 'mark')
return {1, learn(tonumber(ARGV[6]))}
