-- Turns the kill switch, as `Ledger::turn` does. KEYS: as for `take`. ARGV: `halt` or `look`, and how many turns the process has
-- heard of; or `resume`, and the turns of the halt that it ends. Returns the turns, those that the owner has heard of, whether
-- this run of the server knows of every owner, and the owner (counter, owner, renewals) if there is one.
local key, what, number, turns = KEYS[1], ARGV[1], tonumber(ARGV[2]), nil
if what == 'resume' then
  turns = tonumber(redis.call('HGET', key, 'turns') or 0)
  if turns == number and turns % 2 == 1 then turns = redis.call('HINCRBY', key, 'turns', 1) end
else
  turns = tonumber(learn(number))
  -- A new halt also where one holds: a resume of that one may be on its way.
  if what == 'halt' then turns = redis.call('HINCRBY', key, 'turns', 1 + turns % 2) end
end
local kept = redis.call('HMGET', key, 'heard', 'run', 'counter', 'owner', 'renewals')
local state = {string.format('%.0f', turns), kept[1] or '0', kept[2] == '{run_id}' and '1' or '0'}
if kept[4] then state[4], state[5], state[6] = kept[3], kept[4], kept[5] end
return state
