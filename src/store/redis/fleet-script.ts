/** The part of the script that knows who owns what, and which runs want an owner. */
export const fleetScript = `
-- By this clock, in ms with fractions.
local function nowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end
local function score(ms) return string.format('%.3f', ms) end

-- When a run wants an owner: epoch ms, or empty.
local function setDue(run, due)
  if due == '' then redis.call('ZREM', T .. ':due', run)
  else redis.call('ZADD', T .. ':due', due, run) end
end

-- The owner of a run has changed; empty: nobody.
local function own(run, before, owner)
  if before == owner then return end
  if before and before ~= '' then redis.call('SREM', T .. ':owned:' .. before, run) end
  if owner ~= '' then redis.call('SADD', T .. ':owned:' .. owner, run) end
  redis.call('HSET', T .. ':run:' .. run, 'owner', owner)
end

-- A suspended run is looked at if who should look has died: who posted to it, or who suspended it.
local function lookLater(run)
  redis.call('ZADD', T .. ':due', 'LT', score(nowMs() + 1500), run)
end
local function wakes(key) return key == 'stop' or string.sub(key, 1, 7) == 'answer:' end

-- A message has come to the inbox of a run.
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
  redis.call('ZADD', T .. ':due', score(nowMs()), run)
end

-- A run wants an owner: at a moment, or now, given away by its owner.
function ops.want()
  local run, due, process = take(), take(), take()
  if due ~= '' then
    redis.call('ZADD', T .. ':due', due, run)
    if tonumber(due) > nowMs() + 1000 then return 1 end
  elseif redis.call('HGET', T .. ':run:' .. run, 'owner') == process then giveAway(run, process)
  else redis.call('ZADD', T .. ':due', score(nowMs()), run) end
  redis.call('SPUBLISH', T .. ':note', 'want ' .. due .. ' ' .. run)
  return 1
end

-- A process ends: its runs are for others.
function ops.leave()
  local process = take()
  local runs = redis.call('SMEMBERS', T .. ':owned:' .. process)
  for _, run in ipairs(runs) do giveAway(run, process) end
  if #runs > 0 then redis.call('SPUBLISH', T .. ':note', 'left') end
  return #runs
end

-- Runs that are due, each to one process: it comes back after a while if nobody has claimed it. Returns the next moment, and pairs of
-- score and run.
function ops.take()
  local process, limit = take(), take()
  local now = nowMs()
  local found = redis.call('ZRANGE', T .. ':due', '-inf', score(now), 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
  local due = { '' }
  for i = 1, #found, 2 do
    local run = found[i]
    local known = redis.call('HMGET', T .. ':run:' .. run, 'status', 'owner')
    local isOthers = known[1] == 'running' and known[2] ~= '' and known[2] ~= process
    if known[1] and not ended(known[1]) then redis.call('ZADD', T .. ':due', score(now + 2000), run)
    else redis.call('ZREM', T .. ':due', run) end
    if not known[1] or not (ended(known[1]) or isOthers) then
      due[#due + 1] = found[i + 1]
      due[#due + 1] = run
    end
  end
  due[1] = redis.call('ZRANGE', T .. ':due', 0, 0, 'WITHSCORES')[2] or ''
  return due
end

-- A page of runs of a status. Returns, of each, its name, place, owner and row, and how many messages it has, followed by their keys.
function ops.page()
  local status, from, count = take(), tonumber(take()), tonumber(take())
  local list = {}
  for _, run in ipairs(redis.call('ZRANGE', T .. ':status:' .. status, from, from + count - 1)) do
    local known = redis.call('HMGET', T .. ':run:' .. run, 'n', 'owner', 'row')
    local keys = status == 'suspended' and redis.call('HKEYS', T .. ':inbox:' .. run) or {}
    list[#list + 1] = { run, known[1], known[2] or '', status == 'suspended' and known[3] or '', keys }
  end
  return list
end

-- The runs of processes.
function ops.owned()
  local runs = {}
  for _, process in ipairs(takeList()) do
    for _, run in ipairs(redis.call('SMEMBERS', T .. ':owned:' .. process)) do runs[#runs + 1] = run end
  end
  return runs
end

-- How many runs each process has.
function ops.counts()
  local counts = {}
  for i, process in ipairs(takeList()) do counts[i] = redis.call('SCARD', T .. ':owned:' .. process) end
  return counts
end
`
