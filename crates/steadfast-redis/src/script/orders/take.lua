-- Takes the orders of an account, as `Ledger::take` does. KEYS: the hash of their owner, the stream of their journal. ARGV: the
-- lease as it was seen (counter, owner, renewals), the new owner's random bits and name, a new mark, how many turns of the
-- kill switch it has heard of.
-- Returns {1, counter, entries, salt}; {0, counter, owner, renewals, name} if another process owns them; {-1, mark} if the
-- journal may lack an entry: the server is another run of which no owner knows, or has lost something. Behind all of them
-- the turns of the kill switch.
local key, journal, turns = KEYS[1], KEYS[2], learn(tonumber(ARGV[7]))
local kept = redis.call('HMGET', key, 'run', 'counter', 'owner', 'renewals', 'name', 'entries')
local owner = kept[3]
if kept[1] ~= '{run_id}' or tonumber(kept[6]) ~= redis.call('XLEN', journal) then
  redis.call('HSETNX', key, 'mark', ARGV[6])
  return {-1, redis.call('HGET', key, 'mark'), turns}
end
if owner and owner ~= ARGV[4] and (kept[2] ~= ARGV[1] or owner ~= ARGV[2] or kept[4] ~= ARGV[3]) then
  return {0, kept[2], owner, kept[4], kept[5], turns}
end
-- A lost reply is asked for again.
if owner ~= ARGV[4] then
  redis.call('HINCRBY', key, 'counter', 1)
  redis.call('HSET', key, 'owner', ARGV[4], 'name', ARGV[5], 'renewals', 0, 'heard', turns)
  redis.call('HSETNX', key, 'salt', ARGV[4])
end
return {1, redis.call('HGET', key, 'counter'), kept[6], redis.call('HGET', key, 'salt'), turns}
