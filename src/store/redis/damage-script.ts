/**
 * The part of the scripts that handles damaged keys: changed by hand, by another program, or by an interrupted copy. Derived data is restored.
 * Other keys are refused by name.
 */
import { runStatuses, hasEnded } from '../../part/log.ts'
import { began, partitions, step } from './index-script.ts'
import { MillraceError, messageOf } from '../../part/error.ts'
import { storeDamaged, storeFailed } from '../store-error.ts'

/** The prefix of a script's error for a damaged key, followed by its name. */
export const damagedKey = 'DAMAGED'

/** The types of keys by the prefix of their names after `T:`; the first are those of a run. */
const types = Object.entries({
  run: 'hash',
  log: 'stream',
  inbox: 'hash',
  messages: 'list',
  texts: 'set',
  runs: 'zset',
  ids: 'zset',
  words: 'zset',
  dropped: 'hash',
})

const endings = runStatuses.filter(hasEnded)

/** `clock`: the last position, of which `T:clock` is only a copy. Needs `T`. */
export const clockScript = String.raw`
local whole = function(n) return string.format('%.0f', n) end
local function isPlace(n) return n and n >= 0 and n < 9007199254740992 and n == math.floor(n) end

-- T:clock is lost, or cannot be a place: the greatest that was given.
local function findClock()
  local change = redis.pcall('XREVRANGE', T .. ':changes', '+', '-', 'COUNT', 1)
  local run = redis.pcall('ZRANGE', T .. ':runs', 0, 0, 'REV', 'WITHSCORES')
  local last = -1
  if change[1] then last = tonumber(string.match(change[1][1], '^%d+')) end
  if run[2] then last = math.max(last, tonumber(run[2])) end
  return isPlace(last) and last or -1
end

-- Asked for once, and kept at the end of the script.
local clock, kept
local function readClock()
  if clock then return end
  local stored = redis.pcall('GET', T .. ':clock')
  kept = type(stored) == 'string' and tonumber(stored)
  if not isPlace(kept) then kept = nil end
  clock = kept or findClock()
end
local function keepClock()
  if clock and clock >= 0 and clock ~= kept then redis.call('SET', T .. ':clock', whole(clock)) end
end
`

/** Needs `T`. */
export const damageScript = String.raw`
-- By this clock, in ms with fractions.
local function nowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end
local function score(ms) return string.format('%.3f', ms) end

local function isRefused(result) return type(result) == 'table' and result.err end
local function isWrong(result) return isRefused(result) and string.find(result.err, 'WRONGTYPE', 1, true) end

-- What somebody else has made of a run is no error of the script: nil.
local function ask(...)
  local result = redis.pcall(...)
  if isRefused(result) then return nil end
  return result
end

local function damaged(key) return '${damagedKey} ' .. key end

-- A key that only says again what stands in others. name: behind T, such as owned:x.
local function build(name)
  local kind, process = string.match(name, '^(%a+):?(.*)$')
  local function each(status, act)
    for _, run in ipairs(redis.call('ZRANGE', T .. ':status:' .. status, 0, -1)) do act(run, T .. ':run:' .. run) end
  end
  if kind == 'due' then
    each('suspended', function(run) redis.call('ZADD', T .. ':due', score(nowMs()), run) end)
  elseif kind == 'owned' then
    each('running', function(run, key)
      if ask('HGET', key, 'owner') == process then redis.call('SADD', T .. ':' .. name, run) end
    end)
  elseif kind == 'ended' or kind == 'compacted' then
    for _, status in ipairs({ ${endings.map((status) => `'${status}'`).join(', ')} }) do
      each(status, function(run, key)
        local known = ask('HMGET', key, 'at', 'archive')
        local at = known and tonumber(known[1])
        if at and not known[2] then redis.call('ZADD', T .. ':ended', whole(at), run) end
      end)
    end
  end
end

-- A command on such a key, or on one that only says what happens now. One of another type is made anew.
local function hint(command, name, ...)
  local result = redis.pcall(command, T .. ':' .. name, ...)
  if not isRefused(result) then return result end
  if not isWrong(result) then error(result) end
  redis.call('UNLINK', T .. ':' .. name)
  build(name)
  return redis.call(command, T .. ':' .. name, ...)
end

-- The error that names the key because of which something about a run was refused. What is refused for now begins with another word.
local function named(err, id)
  if string.find(err, '${damagedKey}', 1, true) then return err end
  local isWrongType = string.find(err, 'WRONGTYPE', 1, true)
  if not isWrongType and not string.find(err, '^ERR ') and not string.find(err, 'attempt to', 1, true) then return err end
  for i, each in ipairs({ ${types.map(([name, type]) => `'${name} ${type}'`).join(', ')} }) do
    local name, type = string.match(each, '(%a+) (%a+)')
    local key = T .. ':' .. name .. (i <= 5 and ':' .. id or '')
    local found = redis.call('TYPE', key).ok
    if found ~= 'none' and found ~= type then return '${damagedKey} ' .. key .. ' is a ' .. found .. ', and not a ' .. type end
  end
  local names = { 'agent', 'thread', 'status', 'user', 'tenant' }
  local known = ask('HMGET', T .. ':run:' .. id, unpack(names))
  for i, name in ipairs(names) do
    local key = T .. ':' .. name .. ':' .. (known and known[i] or '')
    local found = redis.call('TYPE', key).ok
    if found ~= 'none' and found ~= 'zset' then return '${damagedKey} ' .. key .. ' is a ' .. found .. ', and not a zset' end
  end
  return '${damagedKey} something of ' .. T .. ':run:' .. id .. ' (' .. err .. ')'
end
`

/** `ahead`: the maximum ms by which a process's clock was ahead of `n`: a list from a time on can end there. Needs `T`. */
export const aheadScript = String.raw`
-- What cannot be, or is lost: so much that a list ends nowhere.
local mostAhead = 1e12
local function readAhead()
  local stored = redis.pcall('GET', T .. ':ahead')
  local ahead = type(stored) == 'string' and tonumber(stored)
  return ahead and ahead >= 0 and ahead <= mostAhead and ahead or mostAhead
end
local function toMs(n) return (n / ${partitions} * ${step} + ${began}) / 1000 end
local function toPlace(ms) return math.floor((ms * 1000 - ${began}) / ${step}) * ${partitions} end
`

/** `place`: the address without user and password. Redis' own message may name the user. */
export function redisFailed(what: string, place: string, error: unknown): MillraceError {
  const message = messageOf(error)
  const key = new RegExp(`${damagedKey} ([^]*)$`, 'u').exec(message)?.[1]
  if (key !== undefined) return storeDamaged(what, key)
  const shown = message.replace(/\bUser \S+ has no permissions/u, 'This user has no permissions')
  return storeFailed(what, place, shown === message ? error : new Error(shown))
}

/** Names the key of a command that was refused for its type. */
export function naming(error: unknown, [, key = '']: readonly string[]): unknown {
  return messageOf(error).startsWith('WRONGTYPE') ? new Error(`${damagedKey} ${key} is of another type`) : error
}

/** For `catch`: the value to use if a key is damaged. */
export function damagedIs<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof MillraceError && error.code === 'store-damaged') return value
    throw error
  }
}
