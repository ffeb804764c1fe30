-- Takes in turns of the kill switch that a process has heard of and the store has lost, as `Ledger::learn` does. A halt stands,
-- whoever knows of it alone. Returns all turns.
local function learn(heard)
  local turns = tonumber(redis.call('HGET', KEYS[1], 'turns') or 0)
  if heard > turns then
    turns = heard + ((turns % 2 == 1 and heard % 2 == 0) and 1 or 0)
    redis.call('HSET', KEYS[1], 'turns', string.format('%.0f', turns))
  end
  return string.format('%.0f', turns)
end
