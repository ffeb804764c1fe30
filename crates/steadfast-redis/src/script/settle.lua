-- Records an answer, as `SharedWindows::settle` does. KEYS[1]: as for `acquire`. ARGV: id, latest time, how much later
-- the gateway may count. A stamp is only ever lowered, so that the call may be repeated.
local answered = now + tonumber(ARGV[3])
redis.call('ZADD', key, 'LT', text(answered + answered % 2), ARGV[1])
return {1, shown, 0}
