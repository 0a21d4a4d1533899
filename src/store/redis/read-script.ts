/** Scripts that read several keys of a partition at once. They may be sent twice. */
import { createHash } from 'node:crypto'
import { MillraceError, messageOf } from '../../part/error.ts'
import type { RedisConnection } from './connection.ts'
import type { Partition } from './keys.ts'
import { damagedIs, aheadScript, clockScript, damageScript } from './damage-script.ts'
import { forgetFeedback } from './feedback-script.ts'
import { indexScript } from './index-script.ts'
import { textScript } from './text-script.ts'

/*
 * Scripts that compact, archive and delete ended runs: one operation at a time. They also write when Redis is full, because they free space.
 *
 * KEYS: `T:clock`. ARGV: the operation and its arguments. Returns 1, or 0 without a change if the run's state does not fit.
 */

/** A longer view of a compacted run is not stored: it is folded from few entries. Characters. */
const longView = 65_536
/** Expiry in ms of merged entries that a crash has left. */
const mergedFor = 3_600_000

const upkeepScript = `#!lua flags=allow-oom
local T = string.sub(KEYS[1], 1, -7)
local at = 0
local function take() at = at + 1; return ARGV[at] end
local function ended(status) return status and status ~= 'running' and status ~= 'suspended' end
local ops = {}
${clockScript}${damageScript}${aheadScript}${textScript}${indexScript}${forgetFeedback}
-- Work at a run, for so many ms. 1 if this worker has it, or has it still.
function ops.lease()
  local run, token, ms = take(), take(), take()
  local holder = ask('GET', T .. ':lease:' .. run)
  if holder and holder ~= token then return 0 end
  redis.call('SET', T .. ':lease:' .. run, token, 'PX', ms)
  return 1
end

function ops.release()
  local run, token = take(), take()
  if redis.call('GET', T .. ':lease:' .. run) ~= token then return 0 end
  return redis.call('DEL', T .. ':lease:' .. run)
end

-- Merged entries are collected beside the log. token: that of the worker.
function ops.merge()
  local run, token, count = take(), take(), tonumber(take())
  local key = T .. ':merge:' .. run .. ':' .. token
  for i = 1, count do
    local last, lines = take(), take()
    -- Not if it was sent twice.
    if #redis.call('XRANGE', key, last, last) == 0 then redis.call('XADD', key, last .. '-0', 'e', lines) end
  end
  redis.call('PEXPIRE', key, ${mergedFor})
  return 1
end

-- items: how many the log had when it was read. pieces: how many were collected; 0: the log stays.
function ops.compacted()
  local run, token, items, pieces, row = take(), take(), tonumber(take()), tonumber(take()), take()
  local key, log, merge = T .. ':run:' .. run, T .. ':log:' .. run, T .. ':merge:' .. run .. ':' .. token
  local known = redis.call('HMGET', key, 'status', 'archive')
  local fits = ended(known[1]) and not known[2] and redis.call('XLEN', log) == items
  if not fits or (pieces > 0 and redis.call('XLEN', merge) ~= pieces) then
    redis.call('UNLINK', merge)
    return 0
  end
  if pieces > 0 then
    redis.call('RENAME', merge, log)
    redis.call('PERSIST', log)
  else redis.call('UNLINK', merge) end
  redis.call('HSET', key, 'row', row)
  if redis.call('HSTRLEN', key, 'view') > ${longView} then redis.call('HDEL', key, 'view', 'viewSeq') end
  local when = hint('ZSCORE', 'ended', run)
  hint('ZREM', 'ended', run)
  if when then hint('ZADD', 'compacted', when, run) end
  return 1
end

-- items: how many the log had when it was read. 2: it is archived already.
function ops.archived()
  local run, items, place = take(), tonumber(take()), take()
  local key, log = T .. ':run:' .. run, T .. ':log:' .. run
  local known = redis.call('HMGET', key, 'status', 'archive')
  if known[2] then return 2 end
  if not ended(known[1]) or redis.call('XLEN', log) ~= items then return 0 end
  redis.call('HSET', key, 'archive', place)
  redis.call('UNLINK', log)
  releaseTexts(run)
  hint('ZREM', 'ended', run)
  hint('ZREM', 'compacted', run)
  return 1
end

-- left: what else is to be removed, for who completes it after a crash.
function ops.drop()
  local run, left = take(), take()
  if not ended(redis.call('HGET', T .. ':run:' .. run, 'status')) then return 0 end
  redis.call('HSET', T .. ':dropped', run, left)
  dropRun(run)
  forgetFeedback(run)
  hint('ZREM', 'ended', run)
  hint('ZREM', 'compacted', run)
  return 1
end

-- Forgets the changes from before a moment, in ms.
function ops.trim()
  local before = toPlace(take())
  return hint('XTRIM', 'changes', 'MINID', '~', whole(math.max(0, before)))
end

-- Makes a set anew that was damaged.
function ops.check() return hint('ZCARD', take()) end

local name = take()
local ok, result = pcall(ops[name])
if ok then return result end
return redis.error_reply(named(type(result) == 'table' and result.err or tostring(result), ARGV[2] or ''))
`

/** `text` is Lua; its only key is `T:clock`. */
export function readScript(text: string) {
  const sha = createHash('sha1').update(text).digest('hex')
  /** `what` completes “cannot …”. */
  return async ({ keys, ask }: RedisConnection, what: string, partition: Partition, args: readonly string[]) => {
    const key = `${keys.tag(partition)}:clock`
    try {
      return (await ask(what, key, ['EVALSHA', sha, '1', key, ...args])) as string[]
    } catch (error) {
      const cause = error instanceof MillraceError ? error.cause : undefined
      if (cause === undefined || !messageOf(cause).startsWith('NOSCRIPT')) throw error
      return (await ask(what, key, ['EVAL', text, '1', key, ...args])) as string[]
    }
  }
}

/* Reads the derived sets of a partition. A damaged one is rebuilt. */

/** Runs an operation of the upkeep script. */
export const operate = readScript(upkeepScript)

/** `what` completes “cannot …”; `args`: the arguments after the key. */
export async function readSet<T>(
  connection: RedisConnection,
  what: string,
  partition: Partition,
  set: 'due' | 'ended' | 'compacted',
  [command, ...args]: [string, ...string[]],
): Promise<T[]> {
  const key = `${connection.keys.tag(partition)}:${set}`
  const read = () => connection.ask(what, key, [command, key, ...args])
  const found = await read().catch(damagedIs(undefined))
  if (found !== undefined) return found as T[]
  await operate(connection, what, partition, ['check', set])
  return (await read()) as T[]
}
