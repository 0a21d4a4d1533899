/**
 * The part of the writing script that keeps the index: the order of all changes, and the sorted sets by which runs are listed. Lua, for one
 * partition: `T` is the prefix of its keys, such as `{millrace:5}`. Needs damage-script.ts and text-script.ts.
 */
/** Number of partitions of the keys. Part of the layout: another number is another store. */
export const partitions = 16

/** Approximate maximum number of changes that a partition keeps. */
const mostChanges = 65_536
/** The origin of `n`, so that it is a safe integer until 2096: µs of 2025. */
export const began = 1_735_689_600_000_000
/** µs per step of `n`, which has a slot for each partition. */
export const step = 4

/**
 * `setsOf`: the names of the sets with the runs of a user and of a tenant. A user without a tenant, and one of the same id with a tenant, are two. Runs
 * that belong to no one are in none.
 */
export const ownerSets = String.raw`
local function setOfUser(user, tenant) return 'user-of:' .. #tenant .. ':' .. tenant .. ':' .. user end
local function setsOf(user, tenant)
  local sets = {}
  user, tenant = user or '', tenant or ''
  if user ~= '' then sets = { 'user:' .. user, setOfUser(user, tenant) } end
  if tenant ~= '' then sets[#sets + 1] = 'tenant:' .. tenant end
  return sets
end
`

/**
 * `nextN()`: the position of the current write. It is greater than all others of its partition, and unique over all partitions. `enterRun`,
 * `moveRun`, `dropRun`: a run in the index. `noteChange`: an append.
 */
export const indexScript = String.raw`${ownerSets}
local P = ${partitions}
local place = tonumber(string.match(T, ':(%d+)}$'))

-- The time of this script.
local now
local function nextN()
  readClock()
  if not now then
    local time = redis.call('TIME')
    now = math.floor((time[1] * 1000000 + time[2] - ${began}) / ${step}) * P + place
  end
  local n = now
  if n <= clock then n = clock - clock % P + place end
  if n <= clock then n = n + P end
  clock = n
  return whole(n)
end

-- The entries of an append, which are one item of the stream.
local function noteChange(n, run, first, last)
  hint('XADD', 'changes', 'MAXLEN', '~', ${mostChanges}, n .. '-0', 'r', run, 's', first, 'e', last)
end

-- Words are kept in pieces of at most 48 bytes, which overlap by 24: any 24 bytes of a word are in one.
local function piecesOf(title)
  local all, seen = {}, {}
  for word in string.gmatch(title, '[^ ]+') do
    local at = 1
    while true do
      local piece = string.sub(word, at, at + 47)
      if not seen[piece] then
        seen[piece] = true
        all[#all + 1] = piece
      end
      if at + 47 >= #word then break end
      at = at + 24
    end
  end
  return all
end

-- A piece is found by what begins at each of its characters. gap: 2 with a score before each.
local function startsOf(piece, gap)
  local all, count = {}, 0
  for at = 1, #piece do
    local byte = string.byte(piece, at)
    if byte < 128 or byte > 191 then
      count = count + gap
      all[count] = string.sub(piece, at, at + 23) .. '\0' .. piece
      if gap == 2 then all[count - 1] = 0 end
    end
  end
  return unpack(all)
end

-- Before anything is written: these sets are what they should be.
local function checkSets(...)
  for _, name in ipairs({ ... }) do
    local type = redis.call('TYPE', T .. ':' .. name).ok
    if type ~= 'none' and type ~= 'zset' then error(damaged(T .. ':' .. name .. ' is a ' .. type .. ', and not a zset')) end
  end
end
local function checkIndex(agent, thread, status, user, tenant)
  checkSets('runs', 'ids', 'words', 'agent:' .. agent, 'thread:' .. thread, 'status:' .. status, unpack(setsOf(user, tenant)))
end

local function addTitle(run, n, title)
  for _, piece in ipairs(piecesOf(title)) do
    redis.call('ZADD', T .. ':word:' .. piece, n, run)
    if redis.call('ZCARD', T .. ':word:' .. piece) == 1 then redis.call('ZADD', T .. ':words', startsOf(piece, 2)) end
  end
end
local function dropTitle(run, title)
  for _, piece in ipairs(piecesOf(title)) do
    redis.call('ZREM', T .. ':word:' .. piece, run)
    if redis.call('EXISTS', T .. ':word:' .. piece) == 0 then redis.call('ZREM', T .. ':words', startsOf(piece, 1)) end
  end
end

-- started: epoch ms. title: in lower case, or empty. user, tenant: whom it belongs to; empty, or nil from an older version: no one.
local function enterRun(run, n, agent, thread, status, started, title, user, tenant)
  redis.call('HSET', T .. ':run:' .. run, 'n', n, 'agent', agent, 'thread', thread, 'status', status, 'started', started, 'title', title)
  redis.call('ZADD', T .. ':runs', n, run)
  redis.call('ZADD', T .. ':ids', 0, run)
  redis.call('ZADD', T .. ':agent:' .. agent, n, run)
  redis.call('ZADD', T .. ':thread:' .. thread, n, run)
  redis.call('ZADD', T .. ':status:' .. status, n, run)
  if user and user ~= '' then redis.call('HSET', T .. ':run:' .. run, 'user', user) end
  if tenant and tenant ~= '' then redis.call('HSET', T .. ':run:' .. run, 'tenant', tenant) end
  for _, set in ipairs(setsOf(user, tenant)) do redis.call('ZADD', T .. ':' .. set, n, run) end
  addTitle(run, n, title)
  local ahead = math.max(0, started - toMs(n))
  local isFirst = redis.call('ZCARD', T .. ':runs') == 1
  local most = isFirst and 0 or readAhead()
  if isFirst or ahead > most or most == mostAhead then
    redis.call('SET', T .. ':ahead', string.format('%.3f', math.min(mostAhead, math.max(ahead, most))))
  end
end

-- what: 'agent' or 'status'.
local function moveRun(run, what, from, to)
  if from == to then return end
  redis.call('HSET', T .. ':run:' .. run, what, to)
  redis.call('ZREM', T .. ':' .. what .. ':' .. from, run)
  redis.call('ZADD', T .. ':' .. what .. ':' .. to, redis.call('ZSCORE', T .. ':runs', run) or nextN(), run)
end

-- title: in lower case, or empty. nil from an older version: as it was.
local function renameRun(run, title)
  local key = T .. ':run:' .. run
  local before = redis.call('HGET', key, 'title') or ''
  if not title or title == before then return end
  dropTitle(run, before)
  redis.call('HSET', key, 'title', title)
  addTitle(run, redis.call('ZSCORE', T .. ':runs', run) or nextN(), title)
end

-- Removes a run from all keys but the inbox of its thread and the changes, which are skipped when they are read.
local function dropRun(run)
  local key = T .. ':run:' .. run
  local fields = redis.call('HMGET', key, 'agent', 'thread', 'status', 'title', 'owner', 'user', 'tenant')
  local agent, thread, status, title, owner, user, tenant = unpack(fields)
  if not agent then return 0 end
  for _, set in ipairs(setsOf(user, tenant)) do redis.call('ZREM', T .. ':' .. set, run) end
  for _, set in ipairs({ 'runs', 'ids', 'agent:' .. agent, 'thread:' .. (thread or ''), 'status:' .. (status or '') }) do
    redis.call('ZREM', T .. ':' .. set, run)
  end
  hint('ZREM', 'due', run)
  dropTitle(run, title or '')
  if owner and owner ~= '' then hint('SREM', 'owned:' .. owner, run) end
  releaseTexts(run)
  redis.call('UNLINK', key, T .. ':log:' .. run, T .. ':inbox:' .. run, T .. ':messages:' .. run)
  return 1
end
`
