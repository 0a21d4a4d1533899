/** The part of the scripts that keeps results of test cases: `T:tests:<case>`, a list of rows, the newest first. */

export const testResultsScript = String.raw`
-- The number of a row is a time in µs.
function ops.tested()
  local key, row, most, ms = T .. ':tests:' .. take(), take(), take(), take()
  local time = redis.call('TIME')
  redis.call('LPUSH', key, string.format('%.0f', time[1] * 1000000 + time[2]) .. ' ' .. row)
  redis.call('LTRIM', key, 0, most - 1)
  redis.call('PEXPIRE', key, ms)
  return 1
end

function ops.results()
  return redis.call('LRANGE', T .. ':tests:' .. take(), 0, take() - 1)
end

-- The rows of a case that has got another name, the newest first.
function ops.retested()
  local key, ms, count = T .. ':tests:' .. take(), take(), tonumber(take())
  redis.call('UNLINK', key)
  for _ = 1, count do redis.call('RPUSH', key, take()) end
  if count > 0 then redis.call('PEXPIRE', key, ms) end
  return 1
end

function ops.untested()
  return redis.call('UNLINK', T .. ':tests:' .. take())
end
`
