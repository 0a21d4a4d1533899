/**
 * A small write that replaces what is there, also what somebody else has put there, and is done when Redis is full as well: without it no process
 * could start, and make room.
 */
export function evenFull(command: string, key: string, ...args: string[]): string[] {
  return ['EVAL', script, '1', key, command, ...args]
}

const script = `#!lua flags=allow-oom
local result = redis.pcall(ARGV[1], KEYS[1], unpack(ARGV, 2))
if type(result) ~= 'table' or not result.err or not string.find(result.err, 'WRONGTYPE', 1, true) then return result end
redis.call('UNLINK', KEYS[1])
return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))`
