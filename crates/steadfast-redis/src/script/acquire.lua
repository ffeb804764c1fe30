-- Decides about requests of one caller, one after the other until one is refused, as `SharedWindows::acquire` does. Returns
-- how many are granted.
-- KEYS[1]: a sorted set. Scores are microseconds: above 0, a request's stamp, odd until it is answered (an answer may lie
-- in the future by another caller's clock); from 0 down to -BASE, a refused caller's turn, negated; below -BASE, the memory
-- (clock.lua).
-- ARGV: ids with spaces between them, latest time, first use, critical, interpolates, time on its way, how much earlier that
-- is given up, how long all is full after a loss, how long stamps are kept, how far lent slots lie beyond those on their
-- way; then for each window the most, the most while full, the limit, the period.
local GRACE, number, granted = 100000, {}, 0
for i = 2, #ARGV do number[i] = tonumber(ARGV[i]) end
local is_critical, interpolates = number[4] == 1, number[5] == 1

if former ~= run then
  local is_first = number[3] == 1 and not former and redis.call('ZCOUNT', key, '(0', '+inf') == 0
  if not is_first then full = math.max(full, now + number[8]) end
  if former then redis.call('ZREM', key, former) end
  redis.call('ZADD', key, text(-BASE - full), run)
end
redis.call('ZREMRANGEBYSCORE', key, '(0', text(now - number[9]))
redis.call('ZREMRANGEBYSCORE', key, text(GRACE - now), '(0')

-- The first instant from `now` on at which the next of at most `most` fits into a window, behind `others`.
local function opens(most, period, others)
  local from, s = text(now - period * (interpolates and 2 or 1), true), {}
  if redis.call('ZCOUNT', key, from, '+inf') + others < most then return now end
  for i, value in ipairs(redis.call('ZRANGEBYSCORE', key, from, '+inf', 'WITHSCORES')) do
    local stamp = i % 2 == 0 and tonumber(value)
    if stamp then s[i / 2] = math.min(now, stamp > now and stamp % 2 == 1 and stamp - number[7] or stamp) end
  end
  for _ = 1, others do s[#s + 1] = now end; table.sort(s)
  local n, at, assumed = #s, math.max(now, s[#s - most + 1] + period)
  while interpolates and at ~= assumed do
    assumed = at
    for shift = 0, period, period do
      local gone, before = 1, 1
      for i = 1, n do
        local b = s[i] + shift; if b > at then break end
        while gone <= n and s[gone] + period < b do gone = gone + 1 end
        while before <= n and s[before] < b do before = before + 1 end
        local earlier, spare = before - gone, math.max(0, most - 1 - (n - before + 1))
        if b > at - period and earlier * (b + period - at) > spare * period then
          at = b + math.ceil((earlier - spare) * period / earlier)
        end
      end
    end
  end
  return at
end
local function all(others)
  local from, at, is_full = text(now + number[6] + number[10], true), now, full > now
  if is_full and not is_critical then return full end
  local lent = redis.call('ZCOUNT', key, from, '+inf')
  for i = 11, #ARGV, 4 do
    at = math.max(at, opens(math.min(number[is_full and i + 1 or i] + lent, number[i + 2]), number[i + 3], others))
  end
  return at
end

for id in string.gmatch(ARGV[1], '%S+') do
  local waits = 'w' .. id
  local at, turn = all(0), redis.call('ZSCORE', key, waits)
  local ahead = is_critical and 0 or redis.call('ZCOUNT', key, text(turn and tonumber(turn) or -BASE, true), '(0')
  if at > now and ahead > 0 then at = all(ahead) end
  redis.call('ZREM', key, waits)
  local stamp = now + number[6] + (now + number[6] + 1) % 2
  redis.call('ZADD', key, text(at > now and -at or stamp), at > now and waits or id)
  if at > now then return {granted, shown, at - now} end
  granted = granted + 1
end
return {granted, shown, 0}
