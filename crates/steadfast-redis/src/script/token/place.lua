-- Takes the next place in the OTP zone. KEYS[1]: the last place taken, in milliseconds. ARGV: the time between two places,
-- and how far ahead a place may be. Returns how long to wait for it.
local between, farthest = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local last = tonumber(redis.call('GET', KEYS[1]) or '')
local place = math.max(now, last and last + between or now)
-- No queue is that long: it was taken before the clock was set back.
if place > now + farthest then place = now end
redis.call('SET', KEYS[1], string.format('%.0f', place), 'PX', ARGV[2])
return place - now
