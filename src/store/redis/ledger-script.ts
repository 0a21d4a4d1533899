/** The part of the script that keeps sums, and the audit. Numbers are whole and below 2^53. */

export const ledgerScript = String.raw`
-- What is no whole number is damaged, and counts as nothing.
local function sumAt(key)
  local stored = redis.pcall('GET', key)
  local value = type(stored) == 'string' and tonumber(stored)
  return value and value == math.floor(value) and math.abs(value) < 9007199254740992 and value or 0
end
local function keepSum(key, value, till)
  redis.call('SET', key, string.format('%.0f', value))
  redis.call('PEXPIREAT', key, till)
end

-- book, the source or empty, its position, until; then key, amount and until of each. Returns the sums as texts.
function ops.tally()
  local book, source, position, till = take(), take(), tonumber(take()), take()
  local sums, counted = {}, false
  if source ~= '' then
    local mark = T .. ':mark:' .. #book .. ':' .. book .. ':' .. source
    counted = sumAt(mark) >= position
    if not counted then keepSum(mark, position, till) end
  end
  while isMore() do
    local key, amount, ends = T .. ':sum:' .. #book .. ':' .. book .. ':' .. take(), tonumber(take()), take()
    local value = sumAt(key)
    if not counted then
      value = value + amount
      keepSum(key, value, ends)
    end
    sums[#sums + 1] = string.format('%.0f', value)
  end
  return sums
end

-- book, kind: 'sum' or 'mark', and keys.
function ops.tallied()
  local book, kind = take(), take()
  local sums = {}
  for i, key in ipairs(takeList()) do sums[i] = string.format('%.0f', sumAt(T .. ':' .. kind .. ':' .. #book .. ':' .. book .. ':' .. key)) end
  return sums
end

-- tenant, most, row as JSON. The number of a row is a time, so that those of all tenants have an order.
function ops.audit()
  local tenant, most, row = take(), take(), take()
  local key = T .. ':audit:' .. tenant
  local time = redis.call('TIME')
  local n = time[1] * 1000000 + time[2]
  local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  if last then n = math.max(n, tonumber(string.match(last[1], '^%d+')) + 1) end
  redis.call('XADD', key, 'MAXLEN', '~', most, string.format('%.0f-0', n), 'r', row)
  redis.call('SADD', T .. ':audits', tenant)
  return string.format('%.0f', n)
end

-- before: rows with a smaller number. Returns pairs of number and row, the newest first.
function ops.audited()
  local tenant, before, count = take(), take(), tonumber(take())
  local rows = {}
  for _, item in ipairs(redis.call('XREVRANGE', T .. ':audit:' .. tenant, '(' .. before .. '-0', '-', 'COUNT', count)) do
    rows[#rows + 1] = string.match(item[1], '^%d+')
    rows[#rows + 1] = item[2][2]
  end
  return rows
end

function ops.audits() return redis.call('SMEMBERS', T .. ':audits') end

-- Deletes rows with a smaller number than this.
function ops.unaudit()
  local tenant, before = take(), take()
  local key = T .. ':audit:' .. tenant
  local count = redis.call('XTRIM', key, 'MINID', before .. '-0')
  if redis.call('XLEN', key) == 0 then
    redis.call('UNLINK', key)
    redis.call('SREM', T .. ':audits', tenant)
  end
  return count
end
`
