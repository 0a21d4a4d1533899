/**
 * Lists runs of one partition, newest first. It walks the smallest of the sorted sets that the query names, from the cursor down, and looks
 * at each run there; never at more than `budget` runs in one go.
 *
 * KEYS: `T:clock`. ARGV: the query as JSON: `agent`, `thread`, `statuses`, `words`, `prefix`, `since` (epoch ms), `before` (an upper bound
 * of `n`, as Redis has it), `most`. Returns the bound from which to go on, or '' if there is no more, and then runs and their `n`.
 */
import { aheadScript, damagedKey } from './damage-script.ts'
import { partitions } from './index-script.ts'

/** How many runs to look at in one go. */
const budget = 2000
/** A word that so many pieces of words contain is so common that it does not help to look for it. */
const mostPieces = 200

export const listScript = String.raw`
local T = string.sub(KEYS[1], 1, -7)
${aheadScript}
local q = cjson.decode(ARGV[1])
local found = { '' }

-- One that is damaged may fit less often, and harms no other.
local function fits(run)
  local row = redis.pcall('HMGET', T .. ':run:' .. run, 'agent', 'thread', 'status', 'started', 'title')
  if not row[1] or (q.agent and row[1] ~= q.agent) or (q.thread and row[2] ~= q.thread) then return false end
  if q.since and (tonumber(row[4]) or 0) < q.since then return false end
  if q.prefix and string.sub(run, 1, #q.prefix) ~= q.prefix then return false end
  for _, word in ipairs(q.words) do
    if not string.find(row[5] or '', word, 1, true) then return false end
  end
  if not q.statuses then return true end
  for _, status in ipairs(q.statuses) do
    if row[3] == status then return true end
  end
  return false
end

-- The sets that have all runs that fit: those with the fewest runs. Not those that are damaged.
local keys, size
local function offer(sets)
  local sum = 0
  for _, key in ipairs(sets) do
    local count = redis.pcall('ZCARD', key)
    if type(count) == 'table' then return end
    sum = sum + count
  end
  if not size or sum < size then keys, size = sets, sum end
end
offer({ T .. ':runs' })
if not keys then return redis.error_reply('${damagedKey} ' .. T .. ':runs is no zset') end
if q.agent then offer({ T .. ':agent:' .. q.agent }) end
if q.thread then offer({ T .. ':thread:' .. q.thread }) end
if q.statuses then
  local sets = {}
  for i, status in ipairs(q.statuses) do sets[i] = T .. ':status:' .. status end
  offer(sets)
end
for _, word in ipairs(q.words) do
  local start = string.sub(word, 1, 24)
  local entries = redis.pcall('ZRANGEBYLEX', T .. ':words', '[' .. start, '[' .. start .. '\255', 'LIMIT', 0, ${mostPieces + 1})
  if not entries.err and #entries <= ${mostPieces} then
    local sets, seen = {}, {}
    for _, entry in ipairs(entries) do
      local piece = string.sub(entry, string.find(entry, '\0', 1, true) + 1)
      if not seen[piece] then sets[#sets + 1] = T .. ':word:' .. piece end
      seen[piece] = true
    end
    offer(sets)
  end
end

-- A run that began at this time or later is not below this place.
local floor = '-inf'
if q.since then
  floor = string.format('%.0f', toPlace(q.since - readAhead()) - ${partitions})
end

-- Some of the runs below a place, newest first, and the place down to which they are all.
local function below(before, count)
  local runs, seen, down = {}, {}, nil
  for _, key in ipairs(keys) do
    local some = redis.call('ZREVRANGEBYSCORE', key, before, floor, 'WITHSCORES', 'LIMIT', 0, count)
    for i = 1, #some, 2 do
      local n = tonumber(some[i + 1])
      if not seen[some[i]] then runs[#runs + 1] = { some[i], some[i + 1], n } end
      seen[some[i]] = true
      if i == 2 * count - 1 and (not down or n > down) then down = n end
    end
  end
  if #keys > 1 then table.sort(runs, function(a, b) return a[3] > b[3] end) end
  return runs, down
end

-- Runs by name, if they are fewer.
local function named()
  local ids = redis.pcall('ZRANGEBYLEX', T .. ':ids', '[' .. q.prefix, '[' .. q.prefix .. '\255', 'LIMIT', 0, ${budget / 4})
  if ids.err or #ids >= ${budget / 4} or #ids >= size then return nil end
  local open = string.sub(q.before, 1, 1) == '('
  local upper = open and tonumber(string.sub(q.before, 2)) or math.huge
  local runs = {}
  for _, run in ipairs(ids) do
    local score = redis.call('ZSCORE', T .. ':runs', run)
    if score and tonumber(score) < upper then runs[#runs + 1] = { run, score, tonumber(score) } end
  end
  table.sort(runs, function(a, b) return a[3] > b[3] end)
  return runs
end

local runs = q.prefix and named() or nil
local left, count, before, down = ${budget}, q.most, q.before, nil
if not runs then runs, down = below(before, count) end
while true do
  for _, each in ipairs(runs) do
    if down and each[3] < down then break end
    left = left - 1
    if fits(each[1]) then
      found[#found + 1] = each[1]
      found[#found + 1] = each[2]
      if #found > 2 * q.most then
        found[1] = '(' .. each[2]
        return found
      end
    end
  end
  if not down then return found end
  before = '(' .. string.format('%.0f', down)
  if left <= 0 then
    found[1] = before
    return found
  end
  count = math.min(2 * count, 256)
  runs, down = below(before, count)
end
`
