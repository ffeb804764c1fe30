-- Gives the orders back, as `Ledger::release` does. KEYS: as for `take`. ARGV: the fence (counter, owner).
local kept = redis.call('HMGET', KEYS[1], 'counter', 'owner')
if kept[1] ~= ARGV[1] or kept[2] ~= ARGV[2] then return {0} end
redis.call('HDEL', KEYS[1], 'owner', 'name', 'renewals')
return {1}
