-- Ends a lease. KEYS[1]: as for `take`. ARGV: the owner, which no two leases share.
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
return redis.call('HDEL', KEYS[1], 'owner', 'until')
