/** The part of the scripts that keeps feedback: `T:feedback:<run>`, a hash of rows by person, and `T:judged`, all of them by their number. */

export const feedbackScript = String.raw`
-- The number of a row is a time in µs, so that those of all partitions have an order.
function ops.judge()
  local run, person, row = take(), take(), take()
  if redis.call('EXISTS', T .. ':run:' .. run) == 0 then return 0 end
  local time = redis.call('TIME')
  redis.call('HSET', T .. ':feedback:' .. run, person, row)
  redis.call('ZADD', T .. ':judged', string.format('%.0f', time[1] * 1000000 + time[2]), #run .. ' ' .. run .. person)
  return 1
end

function ops.unjudge()
  local run, person = take(), take()
  redis.call('ZREM', T .. ':judged', #run .. ' ' .. run .. person)
  return redis.call('HDEL', T .. ':feedback:' .. run, person)
end

-- Pairs of number and row.
function ops.judgements()
  local run = take()
  local key, found = T .. ':feedback:' .. run, {}
  for _, person in ipairs(redis.call('HKEYS', key)) do
    found[#found + 1] = redis.call('ZSCORE', T .. ':judged', #run .. ' ' .. run .. person) or '0'
    found[#found + 1] = redis.call('HGET', key, person)
  end
  return found
end

-- before, count. Pairs of number and row, the newest first.
function ops.judged()
  local before, count = take(), take()
  local found = {}
  local page = redis.call('ZRANGE', T .. ':judged', '(' .. before, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, count, 'WITHSCORES')
  for i = 1, #page, 2 do
    local length, rest = string.match(page[i], '^(%d+) (.*)$')
    local row = redis.call('HGET', T .. ':feedback:' .. string.sub(rest, 1, length), string.sub(rest, length + 1))
    found[#found + 1] = page[i + 1]
    found[#found + 1] = row or ''
  end
  return found
end
`

/** Needs `T`. Of a run that is deleted. */
export const forgetFeedback = String.raw`
local function forgetFeedback(run)
  for _, person in ipairs(redis.call('HKEYS', T .. ':feedback:' .. run)) do
    redis.call('ZREM', T .. ':judged', #run .. ' ' .. run .. person)
  end
  redis.call('UNLINK', T .. ':feedback:' .. run)
end
`
