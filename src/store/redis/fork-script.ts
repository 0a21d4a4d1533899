/** The part of the writing script that creates forks. The entries of the source are copied to a temporary key first, page by page. */
export const forkScript = String.raw`
-- A page of entries. What nobody takes is gone after a minute.
function ops.stage()
  local token, last, lines = take(), take(), take()
  local key = T .. ':fork:' .. token
  if #redis.call('XRANGE', key, last, last) == 0 then redis.call('XADD', key, last .. '-0', 'e', lines) end
  redis.call('EXPIRE', key, 60)
  return 1
end

-- origin: from where it is forked. index: as of a new run that is appended to. Returns 0 if the run exists and is not this fork.
function ops.fork()
  local run, token, origin, epoch = take(), take(), take(), take()
  local last, at, status, row, due, index = take(), take(), take(), take(), take(), takeList()
  local roots, given
  if isMore() then roots, given = takeTexts() end
  local key, log = T .. ':run:' .. run, T .. ':log:' .. run
  local known = redis.call('HMGET', key, 'epoch', 'origin', 'user', 'tenant')
  if known[1] then
    local isSame = known[2] == origin and (known[3] or '') == (index[5] or '') and (known[4] or '') == (index[6] or '')
    return isSame and 1 or 0
  end
  checkIndex(index[1], index[2], status, index[5], index[6])
  if roots and not haveTexts(run, roots, given) then error('a text is missing') end
  redis.call('RENAME', T .. ':fork:' .. token, log)
  redis.call('PERSIST', log)
  if roots then putTexts(run, roots, given) end
  redis.call('HSET', key, 'epoch', epoch, 'seq', last, 'at', at, 'row', row, 'owner', '', 'origin', origin)
  enterRun(run, nextN(), index[1], index[2], status, index[3], index[4], index[5], index[6])
  -- Whoever forks a run that goes on claims it at once. If it cannot any more, somebody else does.
  if status == 'running' then due = string.format('%.0f', redis.call('TIME')[1] * 1000 + 10000) end
  setDue(run, due)
  if ended(status) then hint('ZADD', 'ended', at, run) end
  -- Without lines: readers look for themselves.
  redis.call('SPUBLISH', T .. ':live:' .. run, table.concat({ epoch, 0, last, status }, ' ') .. '\n')
  return 1
end
`
