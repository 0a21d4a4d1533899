/** The part of the script that knows who owns what. */
export const fleetScript = `
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

-- A message has come to the inbox of a run.
local function posted(inbox, key)
end

-- A run wants an owner: at a moment, or now, given away by its owner.
function ops.want()
  local run, due, process = take(), take(), take()
  local owner = redis.call('HGET', T .. ':run:' .. run, 'owner')
  if due == '' and owner == process then own(run, owner, '') end
  redis.call('ZADD', T .. ':due', due == '' and '0' or due, run)
  redis.call('SPUBLISH', T .. ':note', 'want ' .. due .. ' ' .. run)
  return 1
end
`
