-- Renews a lease. KEYS[1]: as for `take`. ARGV: the owner, the fence, the life in milliseconds. Returns 1, or 0 if the
-- lease is another's.
local key = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if redis.call('HGET', key, 'owner') ~= ARGV[1] or redis.call('HGET', key, 'fence') ~= ARGV[2] then return 0 end
redis.call('HSET', key, 'until', string.format('%.0f', now + tonumber(ARGV[3])))
return 1
