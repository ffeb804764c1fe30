-- Appends entries to the journal, as `Ledger::append` does. KEYS: as for `take`. ARGV: the fence (counter, owner), how many
-- entries were written before these, the entries. Returns as `renew` does.
local key, journal, turns = KEYS[1], KEYS[2], redis.call('HGET', KEYS[1], 'turns') or '0'
local kept = redis.call('HMGET', key, 'counter', 'owner', 'entries', 'name')
if kept[1] ~= ARGV[1] or kept[2] ~= ARGV[2] then return {0, kept[4] or '', turns} end
local entries, before, count = tonumber(kept[3]), tonumber(ARGV[3]), #ARGV - 3
if entries ~= redis.call('XLEN', journal) then return {-1, turns} end
if entries ~= before + count and entries ~= before then return {-1, turns} end
-- If the reply was lost they are there: the owner appends one batch at a time, and the same one until it is told.
if entries == before then for i = 4, #ARGV do redis.call('XADD', journal, '*', 'entry', ARGV[i]) end end
-- Also where nothing is new: a connection waits only for replicas to have what was written through it.
redis.call('HSET', key, 'entries', string.format('%.0f', before + count))
return {1, turns}
