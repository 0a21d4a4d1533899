/** The connection to Redis or Valkey: opens it, checks it, and retries commands while it is unavailable. */
import { MillraceError, messageOf } from '../../part/error.ts'
import type { Archive } from '../archive/archive.ts'
import { storeClosed } from '../store-error.ts'
import { naming, redisFailed } from './damage-script.ts'
import type { HeartbeatOptions } from './heartbeat.ts'
import { isTransientError } from './transient-error.ts'
import { connect, type Client, type Stirred } from './client.ts'
import { createKeys, format, oldFormat, type Keys, type Partition } from './keys.ts'
import { partitions } from './index-script.ts'
import type { Clocks } from './store-clock.ts'
import { parseRedisUrl, redactUrl, type RedisAddress, isTlsFault } from './url.ts'
import { createWatch, type Area, type Watch } from './watch.ts'

/** Options of {@link redisStore}. */
export interface RedisOptions extends HeartbeatOptions {
  /**
   * The archive for ended runs, to which they are moved later and from which they are then read. It is closed with the store, or when the store
   * cannot be opened. Default: they stay in Redis.
   */
  archive?: Archive
  /** Timeout of reads and writes while Redis is unavailable, in ms. Default 15 000. Then they reject with `store-failed`. */
  timeoutMs?: number
  /** Called with messages for the operator. Default: they are dropped. */
  warn?: (message: string) => void
  /** The clocks of this machine. */
  clocks?: Clocks
}

export interface RedisConnection {
  /** Without user and password. */
  readonly url: string
  readonly keys: Keys
  readonly isCluster: boolean
  readonly timeoutMs: number
  /** Whether no process of an older version is there or can come, so that entries may share texts. Stays true. */
  readonly layout: { sharesTexts: boolean }
  /** Whether this Redis has just been restarted from its files: it may have lost its last second. */
  readonly isFresh: boolean
  /** Sends a command once, to the node of a key. */
  send(key: string, args: string[]): Promise<unknown>
  /** Sends a command, and retries while Redis is unavailable: only for commands that may be executed twice. `what` completes “cannot …”. */
  ask(what: string, key: string, args: string[]): Promise<unknown>
  /** Resolves when a retry is worthwhile. */
  again(): Promise<void>
  /** Waits with the timeout of reads and writes. */
  patiently<T>(what: string, answer: Promise<T>): Promise<T>
  subscribe: Client['subscribe']
  unsubscribe: Client['unsubscribe']
  /** Whether all partitions accept writes, and messages are received. */
  isWhole(): boolean
  /**
   * Called when partitions accept writes again; with an empty list when messages are received again, and some may have been missed. Returns a
   * function that removes the listener.
   */
  onUp(listener: PartitionListener): () => void
  /** Called when partitions no longer respond; with an empty list when messages are no longer received. */
  onDown(listener: PartitionListener): () => void
  close(): Promise<void>
}

type PartitionListener = (partitions: readonly Partition[]) => void

/** Retry interval while no event reports that Redis is back, in ms. */
const tryEvery = 100
/** Maximum time that a restarted Redis may take to load its files, in ms. */
const loadTime = 30_000
/** A Redis with a shorter uptime, in seconds, has just been restarted: it does not report when it finished loading. */
const fresh = loadTime / 1000

/** Connects and checks. Throws `bad-config`, `missing-package`, `store-failed` or `store-version`. */
export async function openConnection(
  url: string,
  { timeoutMs = 15_000, warn, joins = true }: RedisOptions,
): Promise<RedisConnection> {
  const address = parseRedisUrl(url)
  const shown = redactUrl(url)
  const keys = createKeys(address.prefix)
  const ups = new Set<PartitionListener>()
  const downs = new Set<PartitionListener>()
  let closed = false
  let watch: Watch | undefined

  const { client, isCluster, isFresh, sharesTexts } = await open({ address, shown, keys, warn, joins }, () =>
    watch?.look(),
  )
  // A reader may not have the right to write.
  watch = createWatch(client, areasOf(keys, isCluster), joins ? 'DEL' : 'EXISTS', {
    up: (all) => ups.forEach((listener) => listener(all)),
    down: (all) => downs.forEach((listener) => listener(all)),
  })

  function again(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, tryEvery)
      ups.add(done)
      function done(): void {
        clearTimeout(timer)
        ups.delete(done)
        resolve()
      }
    })
  }

  async function ask(what: string, key: string, args: string[]): Promise<unknown> {
    const end = Date.now() + timeoutMs
    for (;;) {
      if (closed) throw storeClosed(what)
      try {
        return await inTime(client.send(key, args), end - Date.now())
      } catch (error) {
        if (closed) throw storeClosed(what)
        if (!isTransientError(error) || Date.now() >= end)
          throw redisFailed(`cannot ${what}`, shown, naming(error, args))
        await again()
      }
    }
  }

  async function patiently<T>(what: string, answer: Promise<T>): Promise<T> {
    try {
      return await inTime(answer, timeoutMs)
    } catch (error) {
      throw error instanceof TimeoutError ? redisFailed(`cannot ${what}`, shown, error) : error
    }
  }

  return {
    url: shown,
    keys,
    isCluster,
    timeoutMs,
    layout: { sharesTexts },
    isFresh,
    send: (key, args) => client.send(key, args),
    ask,
    again,
    patiently,
    subscribe: client.subscribe,
    unsubscribe: client.unsubscribe,
    isWhole: watch.isWhole,
    onUp: (listener) => added(ups, listener),
    onDown: (listener) => added(downs, listener),
    close: async () => {
      closed = true
      watch.end()
      await client.close()
    },
  }
}

/** In a cluster each partition may move to another node, and so may the list of processes. */
function areasOf({ none }: Keys, isCluster: boolean): Area[] {
  const all = none.map((key, partition): Area => ({ key, partitions: partition < partitions ? [partition] : [] }))
  return isCluster ? all : [{ key: none[0]!, partitions: all.flatMap((area) => area.partitions) }]
}

function added<T>(set: Set<T>, value: T): () => void {
  set.add(value)
  return () => void set.delete(value)
}

/** Rejects if there is no reply within `ms`. */
export function inTime<T>(answer: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TimeoutError('no answer in time')), Math.max(0, ms))
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

class TimeoutError extends Error {}

interface Opening {
  address: RedisAddress
  shown: string
  keys: Keys
  warn: RedisOptions['warn']
  joins: boolean
}

async function open({ address, shown, keys, warn, joins }: Opening, stirred: Stirred) {
  try {
    let isCluster = address.hosts.length > 1
    let client = await connect(address, shown, isCluster, stirred)
    try {
      const info = String(await client.send(keys.format, ['INFO', 'everything']))
      const valueOf = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'mu').exec(info)?.[1] ?? ''
      checkVersion(shown, valueOf('valkey_version') || valueOf('redis_version'))
      if (!isCluster && valueOf('cluster_enabled') === '1') {
        isCluster = true
        const single = client
        client = await connect(address, shown, true, stirred)
        await single.close()
      }
      if (isCluster && address.database !== 0) {
        throw noDatabase(shown, address)
      }
      // A reader needs fewer rights. Each node of a cluster has its own users.
      const asked = !joins ? [] : isCluster ? partitionTags(keys) : [keys.tag(0)]
      const missing = await Promise.all(
        asked.map((tag) => loaded(() => missingRights(client.send, keys, `${tag}:clock`))),
      )
      if (missing.flat().length > 0) throw lackingRights(shown, [...new Set(missing.flat())])
      const read = ['GET', keys.format]
      const known =
        (await loaded(() => client.send(keys.format, read)).catch((error) => Promise.reject(naming(error, read)))) ??
        (await loaded(() => client.send(keys.format, evenFull('SET', keys.format, format, 'NX', 'GET'))))
      if (known !== null && known !== format && known !== oldFormat) {
        const what = `${shown}: prefix ${keys.prefix} has another layout than "${format}", which this version reads`
        throw new MillraceError('store-version', `${what}. Use the version that wrote it, or another ?prefix=`)
      }
      const policy = valueOf('maxmemory_policy')
      if (policy !== '' && policy !== 'noeviction') {
        warn?.(
          `${shown}: maxmemory-policy is ${policy}, so Redis may delete runs when memory is short. Use noeviction.`,
        )
      }
      const hasFiles =
        valueOf('aof_enabled') === '1' || valueOf('loading') === '1' || Number(valueOf('rdb_last_load_keys_loaded')) > 0
      const isFresh = hasFiles && Number(valueOf('uptime_in_seconds')) < fresh
      return { client, isCluster, isFresh, sharesTexts: known !== oldFormat }
    } catch (error) {
      await client.close()
      throw error
    }
  } catch (error) {
    throw explainFailure(error, address, shown, keys)
  }
}

const partitionTags = ({ tag }: Keys) => Array.from({ length: partitions }, (_, partition) => tag(partition))

/** Waits while a restarted Redis loads its files. */
async function loaded<T>(send: () => Promise<T>): Promise<T> {
  for (const end = Date.now() + loadTime; ; await new Promise((resolve) => setTimeout(resolve, tryEvery))) {
    try {
      return await send()
    } catch (error) {
      if (!isTransientError(error) || Date.now() > end) throw error
    }
  }
}

function checkVersion(shown: string, version: string): void {
  if (Number.parseInt(version) >= 7) return
  const what = version === '' ? 'does not say its version' : `is version ${version}`
  throw new MillraceError('store-version', `${shown} ${what}; Redis or Valkey 7 or later is needed`)
}

/** The reason why a store cannot be opened, with the cure. Omits Redis' own messages that may name the user. */
const listed = 'docs/redis.md lists all that its user needs (ACL SETUSER)'

/** `shown`: the address without user and password. */
function explainFailure(error: unknown, address: RedisAddress, shown: string, keys: Keys): MillraceError {
  if (error instanceof MillraceError) return error
  const message = messageOf(error)
  const refused = (why: string) =>
    new MillraceError('store-failed', `${shown} refuses the connection: ${why}`, {
      detail: /^[A-Z]+/u.exec(message)?.[0] ?? '',
    })
  if (message.startsWith('NOPERM')) return lackingRights(shown, [rightIn(message, keys)])
  if (
    /^NOAUTH|^ERR.*(?:without any password|already authenticated)/iu.test(message) &&
    address.password === undefined
  ) {
    return refused('it asks for a password; write redis://user:password@host')
  }
  if (/WRONGPASS|NOAUTH|invalid password/iu.test(message)) return refused('check user and password of the URL')
  if (message.startsWith('READONLY')) return refused('it is a replica; write the address of its primary')
  if (message.includes('SELECT is not allowed in cluster mode')) return noDatabase(shown, address)
  if (isTlsFault(error)) {
    return new MillraceError('store-failed', `cannot trust ${shown}: ${cureOf(error, address)}`, { detail: message })
  }
  return redisFailed('cannot reach Redis', shown, error)
}

function noDatabase(shown: string, { database }: RedisAddress): MillraceError {
  return new MillraceError('bad-config', `${shown}: a cluster has no database ${database}; use ?prefix=`)
}

/** `rights`: in the syntax of `ACL SETUSER`. */
function lackingRights(shown: string, rights: readonly string[]): MillraceError {
  return new MillraceError('store-failed', `the user of ${shown} lacks rights: ${rights.join(' ')}. ${listed}`)
}

function rightIn(message: string, keys: Keys): string {
  const command = /'([\w|]+)' (?:sub)?command/u.exec(message)?.[1]
  if (command !== undefined) return `+${command.toLowerCase()}`
  return message.includes('channel') ? channelsOf(keys) : keysOf(keys)
}

function cureOf(error: Error & { code: string }, { hosts, files }: RedisAddress): string {
  const { code } = error
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = hosts.map(({ host }) => host).join(', ')
    return `its certificate is for another host than ${names}. Use a name that stands in the certificate; the nodes of a cluster must announce theirs (cluster-announce-hostname)`
  }
  if (/CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE/u.test(code)) {
    return 'it asks for a certificate of this side, or does not trust it: ?cert=/path/client.pem&key=/path/client-key.pem'
  }
  if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired'
  if (code === 'CERT_NOT_YET_VALID') return 'its certificate is not valid yet; look at the clock of this machine'
  if (/CERT|ISSUER|SIGNATURE/u.test(code)) {
    return files?.ca === undefined
      ? 'its certificate is of an authority that is not known here: set NODE_EXTRA_CA_CERTS=/path/ca.pem, or add ?ca=/path/ca.pem to the URL'
      : 'its certificate is not of the authority in ?ca='
  }
  return 'TLS fails'
}

/**
 * A small write that replaces any value, also one of another program, and works even if Redis is full: otherwise no process could start and free
 * space.
 */
export function evenFull(command: string, key: string, ...args: string[]): string[] {
  return ['EVAL', script, '1', key, command, ...args]
}

const script = `#!lua flags=allow-oom
local result = redis.pcall(ARGV[1], KEYS[1], unpack(ARGV, 2))
if type(result) ~= 'table' or not result.err or not string.find(result.err, 'WRONGTYPE', 1, true) then return result end
redis.call('UNLINK', KEYS[1])
return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))`

/* The rights of the store's user are checked when the store is opened, because a missing right would show much later, in the middle of a run. */

/**
 * All commands that a store sends, itself or in a script: K is a key, C a channel. Each with all required arguments: Redis 7.0 crashes when it is
 * asked about a command with fewer.
 */
export const forms = `
CLUSTER SLOTS;DEL K;EVAL s 1 K;EVALSHA s 1 K;EXISTS K;EXPIRE K 1;GET K;GETRANGE K 0 1;HDEL K f;HGET K f;HGETALL K;HKEYS K;HMGET K f;HSET K f v;HSTRLEN K f
INCRBY K 1;INFO;LINDEX K 0;LLEN K;LPUSH K v;LRANGE K 0 1;LTRIM K 0 1;MEMORY USAGE K;MGET K;PERSIST K;PEXPIRE K 1;PEXPIREAT K 1;PING;PUBSUB SHARDNUMSUB C;RENAME K K;RPUSH K v;SADD K m;SCARD K;SET K v;SETRANGE K 0 v
SMEMBERS K;SPUBLISH C v;SREM K m;SSUBSCRIBE C;STRLEN K;SUNSUBSCRIBE C;TIME;TYPE K;UNLINK K;XADD K * f v;XLEN K;XRANGE K - +;XREVRANGE K + -;XTRIM K MAXLEN 1;ZADD K 1 m;ZCARD K
ZRANDMEMBER K;ZRANGE K 0 1;ZRANGEBYLEX K - +;ZRANGEBYSCORE K 0 1;ZREM K m;ZREMRANGEBYSCORE K 0 1;ZREVRANGEBYSCORE K 1 0;ZSCORE K m`
  .trim()
  .split(/[;\n]/u)

/** ARGV: the forms. Returns the refused ones; none if this server cannot check. */
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

/**
 * The keys and the channels that a store uses, in the syntax of `ACL SETUSER`. They include the character after the prefix, because other prefixes
 * may begin with this one.
 */
const keysOf = ({ prefix }: Keys): string => `~{${prefix}}* ~{${prefix}:*`
const channelsOf = ({ prefix }: Keys): string => `&{${prefix}:*`

/** The name of a command in the syntax of `ACL SETUSER`. */
export function commandOf(form: string): string {
  const [name = '', sub = ''] = form.toLowerCase().split(' ')
  return /^(?:cluster|memory|pubsub)$/u.test(name) ? `${name}|${sub}` : name
}

/** The missing rights of the user at the node of a key, in the syntax of `ACL SETUSER`. */
async function missingRights(
  send: (key: string, args: string[]) => Promise<unknown>,
  keys: Keys,
  key: string,
): Promise<string[]> {
  const asked = forms.map((form) => form.replaceAll(/\bK\b/gu, key).replace(/\bC\b/u, `${key}:live`))
  const refused = (await send(key, ['EVAL', rightsScript, '0', ...asked])) as string[]
  const names = refused.map(commandOf)
  // A user that runs this script may run scripts: it is the key that is refused.
  if (names.includes('eval')) return [keysOf(keys)]
  const isChannel = ['spublish', 'ssubscribe'].every((name) => names.includes(name))
  if (!isChannel || names.includes('pubsub|shardnumsub')) return names.map((name) => `+${name}`)
  return [
    channelsOf(keys),
    ...names.filter((name) => !/^s(?:un)?(?:publish|subscribe)$/u.test(name)).map((name) => `+${name}`),
  ]
}
