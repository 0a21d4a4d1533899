/** The part of the script that knows who owns what, and which runs want an owner. */

/** A run that no process can take is looked at again after so long, in ms, and then less and less often, but at least so often. */
const passFor = 2000
const mostPassFor = 60_000

export const fleetScript = `
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
