-- Lends the slot of a granted request to its process, as `SharedWindows::lend` does. KEYS[1]: as for `acquire`. ARGV: id,
-- latest time, for how long, how far lent slots lie ahead at least, how many may be lent.
local id = ARGV[1]
local from, stamp = now + tonumber(ARGV[4]), tonumber(redis.call('ZSCORE', key, id) or 0)
local lent = redis.call('ZCOUNT', key, text(from, true), '+inf')
if stamp <= now or stamp <= from and lent >= tonumber(ARGV[5]) then return {0, shown, 0} end
local ends = now + tonumber(ARGV[3])
redis.call('ZADD', key, 'XX', text(ends + ends % 2), id)
return {1, shown, 0}
