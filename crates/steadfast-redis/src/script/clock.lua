-- Tells the time of a key, as `KeyClock::read` does. It stands before each script. `shown` is the store's time plus the
-- key's offset, and `now` what the caller's clock allows of it. Members below -BASE are the memory: `last` is the latest
-- `now`, `offset` what steps of the store's clock came to, and the third one the run that the set belongs to, with the
-- instant until which the windows count as full.
-- ARGV[2]: the latest time that the caller's clock allows; BASE if it knows none. No time has passed then, and none if it
-- differs from the key's by more than a call can take: the store's clock has been set.
local run, BASE, LATE, key = '{run_id}', 4503599627370496, 2000000, KEYS[1]
local function text(n, open) return string.format(open and '(%.0f' or '%.0f', n) end
local clock = redis.call('TIME')
local time = clock[1] * 1000000 + clock[2]
local latest, offset, full, last, former = tonumber(ARGV[2]), 0, 0
local memory = redis.call('ZRANGEBYSCORE', key, '-inf', text(-BASE), 'WITHSCORES')
for i = 1, #memory, 2 do
  local value = -BASE - tonumber(memory[i + 1])
  if memory[i] == 'last' then last = value
  elseif memory[i] == 'offset' then offset = value - BASE / 2
  else former, full = memory[i], value end
end
local shown = time + offset
if last and latest + LATE < math.max(shown, last) then latest = BASE end
if last and (latest >= BASE or shown < last) then
  shown = last
  redis.call('ZADD', key, text(time - last - BASE - BASE / 2), 'offset')
end
local now = math.min(shown, latest)
if not last or now > last then redis.call('ZADD', key, text(-BASE - now), 'last') end
