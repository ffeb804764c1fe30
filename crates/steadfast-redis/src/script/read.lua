-- Reads the clock of a key, as `SharedWindows::read` does. KEYS[1]: as for `acquire`. ARGV: nothing, latest time.
return {1, shown, 0}
