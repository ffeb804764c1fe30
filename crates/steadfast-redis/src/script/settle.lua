-- Records an answer, as `SharedWindows::settle` does. KEYS[1]: as for `acquire`. ARGV: id, latest time, how much later
-- the gateway may count. A stamp is only ever lowered, so that the call may be repeated.
local run, key = '{run_id}', KEYS[1]
local clock = redis.call('TIME')
local time = clock[1] * 1000000 + clock[2]
local answered = math.min(time, tonumber(ARGV[2])) + tonumber(ARGV[3])
redis.call('ZADD', key, 'LT', string.format('%.0f', answered + answered % 2), ARGV[1])
return {1, time, answered}
