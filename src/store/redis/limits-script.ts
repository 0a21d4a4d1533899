/** The part of the script that counts for limits. */

/** Places are leased for so long, in ms. */
export const placeLease = 6000

export const limitsScript = `
-- Takes one of a rate. Returns how long to wait, in ms; 0 if it was taken. By GCRA: one number for each key.
function ops.rate()
  local key, gap, per = T .. ':rate:' .. take(), tonumber(take()), tonumber(take())
  local now = nowMs()
  local from = math.max(tonumber(redis.call('GET', key) or '0'), now)
  local wait = from + gap - per - now
  if wait > 0.001 then return math.ceil(wait) end
  redis.call('SET', key, string.format('%.3f', from + gap), 'PX', math.ceil(from + gap - now))
  return 0
end

-- Occupies one of so many places.
function ops.occupy()
  local key, place, most = T .. ':places:' .. take(), take(), tonumber(take())
  local now = nowMs()
  redis.call('ZREMRANGEBYSCORE', key, '-inf', score(now))
  if redis.call('ZCARD', key) >= most then return 0 end
  redis.call('ZADD', key, score(now + ${placeLease}), place)
  redis.call('PEXPIRE', key, ${2 * placeLease})
  return 1
end

-- Leases occupied places again, also those that Redis has lost.
function ops.hold()
  local key, places = T .. ':places:' .. take(), takeList()
  local till = score(nowMs() + ${placeLease})
  for _, place in ipairs(places) do redis.call('ZADD', key, till, place) end
  redis.call('PEXPIRE', key, ${2 * placeLease})
  return 1
end

function ops.vacate()
  redis.call('ZREM', T .. ':places:' .. take(), take())
  return 1
end
`
