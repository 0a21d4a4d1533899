/** A small write that replaces what is there, and is done when Redis is full as well: without it no process could start, and make room. */
export function evenFull(command: string, key: string, ...args: string[]): string[] {
  return ['EVAL', script, '1', key, command, ...args]
}

const script = `#!lua flags=allow-oom
return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))`
