/** The part of the script that counts for limits. */

/** Lease duration of places, in ms. */
export const placeLease = 6000

export const limitsScript = `
-- Takes one of a rate. Returns how long to wait, in ms; 0 if it was taken. By GCRA: one number for each key.
function ops.rate()
  local key, gap, per = T .. ':rate:' .. take(), tonumber(take()), tonumber(take())
  local now = nowMs()
  local used = redis.pcall('GET', key)
  used = type(used) == 'string' and tonumber(used)
  -- What nobody can have used is damaged.
  local from = used and used > now and used <= now + per + 1 and used or now
  local wait = from + gap - per - now
  if wait > 0.001 then return math.ceil(wait) end
  redis.call('SET', key, string.format('%.3f', from + gap), 'PX', math.ceil(from + gap - now))
  return 0
end

-- Occupies one of so many places.
function ops.occupy()
  local name, place, most = 'places:' .. take(), take(), tonumber(take())
  local key, now = T .. ':' .. name, nowMs()
  hint('ZREMRANGEBYSCORE', name, '-inf', score(now))
  -- No place is leased for longer.
  redis.call('ZREMRANGEBYSCORE', key, score(now + ${2 * placeLease}), '+inf')
  if redis.call('ZCARD', key) >= most then return 0 end
  redis.call('ZADD', key, score(now + ${placeLease}), place)
  redis.call('PEXPIRE', key, ${2 * placeLease})
  return 1
end

-- Leases occupied places again, also those that Redis has lost.
function ops.hold()
  local name, places = 'places:' .. take(), takeList()
  local till = score(nowMs() + ${placeLease})
  for _, place in ipairs(places) do hint('ZADD', name, till, place) end
  redis.call('PEXPIRE', T .. ':' .. name, ${2 * placeLease})
  return 1
end

function ops.vacate()
  local name, place = 'places:' .. take(), take()
  hint('ZREM', name, place)
  return 1
end
`
