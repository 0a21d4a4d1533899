/** The part of the script that stores entries, claims and views. */
export const logScript = `
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
function ops.append()
  local run, epoch, process = take(), take(), take()
  local before, last, when, lines = take(), take(), take(), take()
  local status, row, due = take(), take(), take()
  -- Of a new run: agent, thread, start, title in lower case. Of one that goes on as another agent: from and to.
  local index = takeList()
  local viewSeq, view = take(), take()
  local key = T .. ':run:' .. run
  local known = redis.call('HMGET', key, 'epoch', 'seq', 'status', 'owner')
  if known[1] then
    if known[1] ~= epoch or known[2] ~= before or ended(known[3]) then return 0 end
    if known[4] ~= '' and known[4] ~= process then return 0 end
  elseif before ~= '0' then return 0 end
  if not known[1] then checkIndex(index[1], index[2], status)
  elseif status ~= '' and status ~= known[3] then checkSets('runs', 'status:' .. status) end
  redis.call('XADD', T .. ':log:' .. run, last .. '-0', 'e', lines)
  local n = nextN()
  changed = n
  if status == '' then redis.call('HSET', key, 'seq', last, 'at', when)
  else redis.call('HSET', key, 'seq', last, 'at', when, 'row', row) end
  if not known[1] then
    redis.call('HSET', key, 'epoch', epoch)
    enterRun(run, n, index[1], index[2], status, index[3], index[4])
    for _, kind in ipairs({ ':inbox:', ':messages:' }) do redis.call('PERSIST', T .. kind .. run) end
  else
    if #index > 0 then moveRun(run, 'agent', index[1], index[2]) end
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
  local known = redis.call('HMGET', key, 'epoch', 'status', 'owner', 'seq', 'at', 'row', 'token', 'passed')
  if not known[1] then return 0 end
  local owner = known[3]
  local isTaken = known[2] == 'running' and owner ~= process
  local mine = { known[4], known[5], known[6], isTaken and 1 or 0 }
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
