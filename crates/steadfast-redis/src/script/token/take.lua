-- Takes the lease of a login. KEYS[1]: a hash, the record with its lease. ARGV: the new owner, the life of a lease in
-- milliseconds. Returns the fence, which grows with each lease; or 0 and for how long another owner has the lease.
local key, life = KEYS[1], tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local owner, ends = redis.call('HGET', key, 'owner'), redis.call('HGET', key, 'until')
local left = (tonumber(ends or 0) or 0) - now
-- A lease that ends later was taken before the clock was set back.
if owner and owner ~= ARGV[1] and left > 0 and left <= life then return {0, left} end
redis.call('HSET', key, 'owner', ARGV[1], 'until', string.format('%.0f', now + life))
return {redis.call('HINCRBY', key, 'fence', 1), life}
