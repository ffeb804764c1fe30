-- Lends the slot of a granted request to its process, as `SharedWindows::lend` does. KEYS[1]: as for `acquire`. ARGV: id,
-- latest time, for how long, how far lent slots lie ahead at least, how many may be lent.
local run, key, id = '{run_id}', KEYS[1], ARGV[1]
local clock = redis.call('TIME')
local time = clock[1] * 1000000 + clock[2]
local now = math.min(time, tonumber(ARGV[2]))
local from, stamp = now + tonumber(ARGV[4]), tonumber(redis.call('ZSCORE', key, id) or 0)
local lent = redis.call('ZCOUNT', key, string.format('(%.0f', from), '+inf')
if stamp <= now or stamp <= from and lent >= tonumber(ARGV[5]) then return {0, time, now} end
local ends = now + tonumber(ARGV[3])
redis.call('ZADD', key, 'XX', string.format('%.0f', ends + ends % 2), id)
return {1, time, ends}
