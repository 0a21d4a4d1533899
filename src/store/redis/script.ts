/**
 * The script that changes a partition: a list of operations, with one result for each: 0 for one that does not apply, an error for one that fails.
 *
 * Its only key is `T:clock`; all others have the same hash tag. ARGV: for each operation its name and its arguments.
 */
import { createHash } from 'node:crypto'
import { aheadScript, clockScript, damageScript } from './damage-script.ts'
import { feedbackScript } from './feedback-script.ts'
import { forkScript } from './fork-script.ts'
import { indexScript } from './index-script.ts'
import { ledgerScript } from './ledger-script.ts'
import { limitsScript } from './limits-script.ts'
import { testResultsScript } from './test-results-script.ts'
import { newTextScript, textScript } from './text-script.ts'

/** The part of the script that stores entries, claims and views. */
const logScript = `
-- Not of entries that are not there: who kept it has seen what Redis has lost.
local function keep(run, seq, view)
  local key = T .. ':run:' .. run
  local stored = redis.call('HMGET', key, 'seq', 'viewSeq')
  local last, before = tonumber(stored[1] or '-1') or -1, tonumber(stored[2] or '0') or 0
  if tonumber(seq) > last or (tonumber(seq) < before and before <= last) then return 0 end
  redis.call('HSET', key, 'view', view, 'viewSeq', seq)
  return 1
end

function ops.view()
  return keep(take(), take(), take())
end

-- before: the last seq of the run as the writer knows it, 0 for a new run. status and row: empty if only seq and time have changed.
-- Returns 2 if a text that the entries refer to is neither stored nor sent.
function ops.append()
  local run, epoch, process = take(), take(), take()
  local before, last, when, lines = take(), take(), take(), take()
  local status, row, due = take(), take(), take()
  -- Of a new run: agent, thread, start, title in lower case, owner, tenant. Of a fork that was changed: its agent before and now, and its title.
  local index = takeList()
  local viewSeq, view = take(), take()
  -- The entries as they are stored, if that is not as they are published.
  local stored, roots, given = lines
  if isMore() then
    stored = take()
    roots, given = takeTexts()
  end
  local key = T .. ':run:' .. run
  local known = redis.call('HMGET', key, 'epoch', 'seq', 'status', 'owner')
  if known[1] then
    if known[1] ~= epoch or known[2] ~= before or ended(known[3]) then return 0 end
    if known[4] ~= '' and known[4] ~= process then return 0 end
  elseif before ~= '0' then return 0 end
  if roots and not haveTexts(run, roots, given) then return 2 end
  if not known[1] then checkIndex(index[1], index[2], status, index[5], index[6])
  elseif #index > 0 then checkSets('runs', 'words', 'agent:' .. index[2], 'status:' .. status)
  elseif status ~= '' and status ~= known[3] then checkSets('runs', 'status:' .. status) end
  if not roots then redis.call('XADD', T .. ':log:' .. run, last .. '-0', 'e', stored)
  else
    -- With its length as it is read.
    redis.call('XADD', T .. ':log:' .. run, last .. '-0', 'e', stored, 'l', #lines)
    putTexts(run, roots, given)
  end
  local n = nextN()
  changed = n
  if status == '' then redis.call('HSET', key, 'seq', last, 'at', when)
  else redis.call('HSET', key, 'seq', last, 'at', when, 'row', row) end
  if not known[1] then
    redis.call('HSET', key, 'epoch', epoch)
    enterRun(run, n, index[1], index[2], status, index[3], index[4], index[5], index[6])
    for _, kind in ipairs({ ':inbox:', ':messages:' }) do redis.call('PERSIST', T .. kind .. run) end
  else
    if #index > 0 then
      moveRun(run, 'agent', index[1], index[2])
      renameRun(run, index[3])
    end
    if status ~= '' then moveRun(run, 'status', known[3], status) end
  end
  if status == '' then status = known[3] end
  if status ~= known[3] then
    own(run, known[4], status == 'running' and process or '')
    if status == 'suspended' or known[3] == 'suspended' then setDue(run, due) end
    if status == 'suspended' then suspended(run) end
    if ended(status) then hint('ZADD', 'ended', when, run) end
  end
  if viewSeq ~= '' then keep(run, viewSeq, view) end
  noteChange(n, run, string.format('%.0f', before + 1), last)
  redis.call('SPUBLISH', T .. ':live:' .. run, table.concat({ epoch, before, last, status }, ' ') .. '\\n' .. lines)
  return 1
end

-- token: that of this claim, which may be sent twice. dead: processes whose runs are free. force: the claim was made before, and lost.
function ops.claim()
  local run, epoch, process, token, force, dead = take(), take(), take(), take(), take(), takeList()
  local key = T .. ':run:' .. run
  local known = redis.call('HMGET', key, 'epoch', 'status', 'owner', 'seq', 'at', 'row', 'token', 'passed', 'origin')
  if not known[1] then return 0 end
  local owner = known[3]
  local isTaken = known[2] == 'running' and owner ~= process
  local mine = { known[4], known[5], known[6], isTaken and 1 or 0, known[9] or '' }
  local claimed = string.format('%.0f', epoch + 1)
  if known[1] == claimed and known[7] == token then return mine end
  if known[1] ~= epoch or ended(known[2]) then return 0 end
  local free = known[2] == 'suspended' or owner == '' or owner == process or force == '1'
  for _, each in ipairs(dead) do free = free or each == owner end
  if not free then return 0 end
  redis.call('HSET', key, 'epoch', claimed, 'token', token)
  if known[8] then redis.call('HDEL', key, 'passed') end
  own(run, owner, process)
  moveRun(run, 'status', known[2], 'running')
  setDue(run, '')
  redis.call('SPUBLISH', T .. ':note', 'claim ' .. claimed .. ' ' .. run)
  return mine
end
`

/* The part of the script that stores messages. */

/** Retention of a thread's inbox after its last message, in s. It is also deleted with the thread's last run. */
const threadFor = 31 * 86_400
/** Retention of an inbox without a run after its last message, in s: an idempotency key, a run that never started. */
const keptFor = 86_400

const inboxScript = `
-- Messages in order, up to the first whose key is taken: 1 for each that is stored, else the winner's JSON, and no further.
function ops.post()
  local inbox, sender, count = take(), take(), tonumber(take())
  local positions, list = T .. ':inbox:' .. inbox, T .. ':messages:' .. inbox
  local results, last = {}, nil
  for i = 1, count do
    local key, text = take(), take()
    local token = sender .. '.' .. i
    local position = redis.call('HGET', positions, key)
    if position then
      posted(inbox, key)
      local winner = tonumber(position) and redis.call('LINDEX', list, position - 1)
      if not winner then error(damaged(positions)) end
      local head = key .. '\\n' .. token .. '\\n'
      -- Sent twice: the first time counted.
      if string.sub(winner, 1, #head) == head then results[i] = 1
      else
        local _, stop = string.find(winner, '\\n', #key + 2, true)
        results[i] = string.sub(winner, stop + 1)
        break
      end
    else
      last = redis.call('RPUSH', list, key .. '\\n' .. token .. '\\n' .. text)
      redis.call('HSET', positions, key, last)
      results[i] = 1
      posted(inbox, key)
    end
  end
  if last then
    redis.call('SPUBLISH', T .. ':bell:' .. inbox, last)
    -- Keys and secrets of the server have no run, and stay.
    if string.sub(inbox, 1, 7) ~= 'access:' and redis.call('EXISTS', T .. ':run:' .. inbox) == 0 then
      local seconds = string.sub(inbox, 1, 7) == 'thread:' and ${threadFor} or ${keptFor}
      for _, key in ipairs({ positions, list }) do redis.call('EXPIRE', key, seconds) end
    end
  end
  return results
end
`

/* The part of the script that manages owners, and runs that need one. */

/** A run that no process can take is checked again after this time, in ms, and then at growing intervals up to the maximum. */
const passFor = 2000
const mostPassFor = 60_000

const fleetScript = `
-- When a run wants an owner: epoch ms, or empty.
local function setDue(run, due)
  if due == '' then hint('ZREM', 'due', run)
  else hint('ZADD', 'due', due, run) end
end

-- The owner of a run has changed; empty: nobody.
local function own(run, before, owner)
  if before == owner then return end
  if before and before ~= '' then hint('SREM', 'owned:' .. before, run) end
  if owner ~= '' then hint('SADD', 'owned:' .. owner, run) end
  redis.call('HSET', T .. ':run:' .. run, 'owner', owner)
end

-- A suspended run is looked at if who should look has died: who posted to it, or who suspended it.
local function lookLater(run)
  redis.call('HDEL', T .. ':run:' .. run, 'passed')
  hint('ZADD', 'due', 'LT', score(nowMs() + 1500), run)
end
local function wakes(key) return key == 'stop' or string.sub(key, 1, 7) == 'answer:' end

-- A message has come to the inbox of a run, perhaps once more: whoever sends it again is not sure that it was heard.
local function posted(inbox, key)
  if wakes(key) and redis.call('HGET', T .. ':run:' .. inbox, 'status') == 'suspended' then lookLater(inbox) end
end

-- A run was suspended.
local function suspended(run)
  for _, key in ipairs(redis.call('HKEYS', T .. ':inbox:' .. run)) do
    if wakes(key) then return lookLater(run) end
  end
end

-- Nobody owns it any more.
local function giveAway(run, owner)
  own(run, owner, '')
  hint('ZADD', 'due', score(nowMs()), run)
end

-- A run wants an owner: at a moment, or now, given away by its owner. seen: how many messages were read before that moment was chosen;
-- if there are more, it wants one now, and the result is 2.
function ops.want()
  local run, due, process, seen = take(), take(), take(), take()
  local key, result = T .. ':run:' .. run, 1
  if seen ~= '' and redis.call('LLEN', T .. ':messages:' .. run) > tonumber(seen) then due, result = '', 2 end
  local known = redis.call('HMGET', key, 'status', 'owner')
  if due ~= '' then
    -- Somebody else goes on with it, or has ended it.
    if known[1] and (ended(known[1]) or (known[1] == 'running' and known[2] ~= process)) then return 0 end
    hint('ZADD', 'due', due, run)
    if tonumber(due) > nowMs() + 1000 then return result end
  else
    redis.call('HDEL', key, 'passed')
    if known[2] == process then giveAway(run, process)
    else hint('ZADD', 'due', score(nowMs()), run) end
  end
  redis.call('SPUBLISH', T .. ':note', 'want ' .. due .. ' ' .. run)
  return result
end

-- A process lacks what a run needs. The others look at it at once, and one of them again when it has waited twice as long.
function ops.pass()
  local run, process = take(), take()
  local key = T .. ':run:' .. run
  local known = redis.call('HMGET', key, 'status', 'owner', 'passed')
  if not known[1] or ended(known[1]) then return 0 end
  local now = nowMs()
  -- When it was passed on for the first time, and when others were told last: they pass it on as well.
  local first, told = string.match(known[3] or '', '^(%d+%.%d+) (%d+%.%d+)$')
  if not told or math.abs(now - told) > 1000 then
    told = score(now)
    redis.call('SPUBLISH', T .. ':note', 'pass ' .. process .. ' ' .. run)
  end
  first = first or told
  redis.call('HSET', key, 'passed', first .. ' ' .. told)
  local isOwned = known[1] == 'running' and known[2] ~= ''
  if not isOwned then hint('ZADD', 'due', score(now + math.max(${passFor}, math.min(now - first, ${mostPassFor}))), run) end
  return 1
end

-- A process ends: its runs are for others.
function ops.leave()
  local process = take()
  local runs = hint('SMEMBERS', 'owned:' .. process)
  for _, run in ipairs(runs) do
    -- One that is damaged holds up no other.
    pcall(giveAway, run, process)
  end
  if #runs > 0 then redis.call('SPUBLISH', T .. ':note', 'left') end
  return #runs
end

-- Runs that are due, each to one process: it comes back after a while if nobody has claimed it. Returns the next moment, and pairs of
-- score and run.
function ops.take()
  local process, limit = take(), take()
  local now = nowMs()
  local found = hint('ZRANGE', 'due', '-inf', score(now), 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
  local due = { '' }
  for i = 1, #found, 2 do
    local run = found[i]
    local known = ask('HMGET', T .. ':run:' .. run, 'status', 'owner') or { 'damaged' }
    local isOthers = known[1] == 'running' and known[2] ~= '' and known[2] ~= process
    if known[1] and not ended(known[1]) then hint('ZADD', 'due', score(now + 2000), run)
    else hint('ZREM', 'due', run) end
    if not known[1] or not (ended(known[1]) or isOthers) then
      due[#due + 1] = found[i + 1]
      due[#due + 1] = run
    end
  end
  due[1] = hint('ZRANGE', 'due', 0, 0, 'WITHSCORES')[2] or ''
  return due
end

-- A page of runs of a status. Returns, of each, its name, place, owner and row, and how many messages it has, followed by their keys.
function ops.page()
  local status, from, count = take(), tonumber(take()), tonumber(take())
  local list = {}
  local found = redis.call('ZRANGE', T .. ':status:' .. status, from, from + count - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    local run = found[i]
    local known = ask('HMGET', T .. ':run:' .. run, 'owner', 'row') or {}
    local keys = status == 'suspended' and ask('HKEYS', T .. ':inbox:' .. run) or {}
    list[#list + 1] = { run, found[i + 1], known[1] or '', status == 'suspended' and known[2] or '', keys }
  end
  return list
end

-- The runs of processes.
function ops.owned()
  local runs = {}
  for _, process in ipairs(takeList()) do
    for _, run in ipairs(hint('SMEMBERS', 'owned:' .. process)) do runs[#runs + 1] = run end
  end
  return runs
end

-- How many runs each process has.
function ops.counts()
  local counts = {}
  for i, process in ipairs(takeList()) do counts[i] = hint('SCARD', 'owned:' .. process) end
  return counts
end
`

const head = `
local T = string.sub(KEYS[1], 1, -7)
local at = 0
local function take() at = at + 1; return ARGV[at] end
local function takeList()
  local list = {}
  for i = 1, tonumber(take()) do list[i] = take() end
  return list
end
-- The end of the arguments of this operation.
local stop
local function isMore() return at < stop end
-- The place of the last change of this script.
local changed
local function ended(status) return status ~= 'running' and status ~= 'suspended' end
local ops = {}
`

const tail = `
local results = {}
while at < #ARGV do
  local name = take()
  -- The arguments of one that fails must not be taken for the next one.
  local count = tonumber(take())
  stop = at + count
  local next = stop
  local id = ARGV[at + 1]
  local ok, result = pcall(ops[name])
  if ok then results[#results + 1] = result
  else results[#results + 1] = 'failed: ' .. named(type(result) == 'table' and result.err or tostring(result), id) end
  at = next
end
keepClock()
if changed then redis.call('SPUBLISH', T .. ':changed', changed) end
return results
`

const doing = [
  fleetScript,
  logScript,
  inboxScript,
  limitsScript,
  ledgerScript,
  feedbackScript,
  testResultsScript,
  forkScript,
]
const knowledge = [clockScript, damageScript, aheadScript, textScript, newTextScript, indexScript]
export const script = [head, ...knowledge, ...doing, tail].join('\n')
export const sha = createHash('sha1').update(script).digest('hex')

/** The arguments of one operation. */
export function operation(name: string, args: readonly (string | number)[]): string[] {
  return [name, String(args.length), ...args.map(String)]
}

/** A list among the arguments. */
export function listed(values: readonly string[]): string[] {
  return [String(values.length), ...values]
}
