-- Turns the kill switch, as `Ledger::turn` does. KEYS: as for `take`. ARGV: 1 to halt, 0 to resume, nothing to look. Returns the
-- turns, those that the owner has heard of, whether this run of the server knows of every owner, and the owner (counter,
-- owner, renewals) if there is one.
local key = KEYS[1]
local turns = tonumber(redis.call('HGET', key, 'turns') or 0)
if ARGV[1] ~= '' and turns % 2 ~= tonumber(ARGV[1]) then turns = redis.call('HINCRBY', key, 'turns', 1) end
local kept = redis.call('HMGET', key, 'heard', 'run', 'counter', 'owner', 'renewals')
local state = {string.format('%.0f', turns), kept[1] or '0', kept[2] == '{run_id}' and '1' or '0'}
if kept[4] then state[4], state[5], state[6] = kept[3], kept[4], kept[5] end
return state
