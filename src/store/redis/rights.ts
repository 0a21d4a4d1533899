/** What the user of the store may do is looked at when it is opened, because a right that is missing would show much later, in the middle of a run. */
import type { Keys } from './keys.ts'

/**
 * All that a store sends, itself or in a script: K is a key, C a channel. Each with as many arguments as it needs: Redis 7.0 crashes when it is asked about
 * a command with fewer.
 */
export const forms = `
CLUSTER SLOTS;DEL K;EVAL s 1 K;EVALSHA s 1 K;EXISTS K;EXPIRE K 1;GET K;HDEL K f;HGET K f;HGETALL K;HKEYS K;HMGET K f;HSET K f v;HSTRLEN K f
INFO;LINDEX K 0;LLEN K;LRANGE K 0 1;MEMORY USAGE K;PERSIST K;PEXPIRE K 1;PING;PUBSUB SHARDNUMSUB C;RENAME K K;RPUSH K v;SADD K m;SCARD K;SET K v
SMEMBERS K;SPUBLISH C v;SREM K m;SSUBSCRIBE C;SUNSUBSCRIBE C;TIME;TYPE K;UNLINK K;XADD K * f v;XLEN K;XRANGE K - +;XREVRANGE K + -;XTRIM K MAXLEN 1;ZADD K 1 m;ZCARD K
ZRANDMEMBER K;ZRANGE K 0 1;ZRANGEBYLEX K - +;ZRANGEBYSCORE K 0 1;ZREM K m;ZREMRANGEBYSCORE K 0 1;ZREVRANGEBYSCORE K 1 0;ZSCORE K m`
  .trim()
  .split(/[;\n]/u)

/** ARGV: the forms. Returns those that are refused; none if this server cannot tell. */
const rightsScript = `
local refused = {}
if not redis.acl_check_cmd then return refused end
for _, form in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(form, '%S+') do words[#words + 1] = word end
  local ok, may = pcall(redis.acl_check_cmd, unpack(words))
  if ok and not may then refused[#refused + 1] = form end
end
return refused
`

/** The keys and the channels that a store uses, as `ACL SETUSER` takes them. What follows the prefix is in them: others may begin with it. */
export const keysOf = ({ prefix }: Keys): string => `~{${prefix}}* ~{${prefix}:*`
export const channelsOf = ({ prefix }: Keys): string => `&{${prefix}:*`

/** The name of a command as `ACL SETUSER` takes it. */
export function commandOf(form: string): string {
  const [name = '', sub = ''] = form.toLowerCase().split(' ')
  return /^(?:cluster|memory|pubsub)$/u.test(name) ? `${name}|${sub}` : name
}

/** The rights that the user lacks at the node of a key, as `ACL SETUSER` takes them. */
export async function missingRights(
  send: (key: string, args: string[]) => Promise<unknown>,
  keys: Keys,
  key: string,
): Promise<string[]> {
  const asked = forms.map((form) => form.replaceAll(/\bK\b/gu, key).replace(/\bC\b/u, `${key}:live`))
  const refused = (await send(key, ['EVAL', rightsScript, '0', ...asked])) as string[]
  const names = refused.map(commandOf)
  // Whoever runs a script may run one: it is the key that is refused.
  if (names.includes('eval')) return [keysOf(keys)]
  const isChannel = ['spublish', 'ssubscribe'].every((name) => names.includes(name))
  if (!isChannel || names.includes('pubsub|shardnumsub')) return names.map((name) => `+${name}`)
  return [
    channelsOf(keys),
    ...names.filter((name) => !/^s(?:un)?(?:publish|subscribe)$/u.test(name)).map((name) => `+${name}`),
  ]
}
