/** The part of the script that stores messages. */

/** How long after the last message the inbox of a thread is kept, in s. It goes with the thread's last run, too. */
const threadFor = 31 * 86_400
/** How long after the last message an inbox without a run is kept, in s: an idempotency key, a run that never began. */
const keptFor = 86_400

export const inboxScript = `
-- Messages in order, up to the first whose key is taken: 1 for each that is stored, else the winner's JSON, and no further.
function ops.post()
  local inbox, sender, count = take(), take(), tonumber(take())
  local positions, list = T .. ':inbox:' .. inbox, T .. ':messages:' .. inbox
  local results, last = {}, nil
  for i = 1, count do
    local key, text = take(), take()
    local token = sender .. '.' .. i
    local position = redis.call('HGET', positions, key)
    if position then
      posted(inbox, key)
      local winner = tonumber(position) and redis.call('LINDEX', list, position - 1)
      if not winner then error(damaged(positions)) end
      local head = key .. '\\n' .. token .. '\\n'
      -- Sent twice: the first time counted.
      if string.sub(winner, 1, #head) == head then results[i] = 1
      else
        local _, stop = string.find(winner, '\\n', #key + 2, true)
        results[i] = string.sub(winner, stop + 1)
        break
      end
    else
      last = redis.call('RPUSH', list, key .. '\\n' .. token .. '\\n' .. text)
      redis.call('HSET', positions, key, last)
      results[i] = 1
      posted(inbox, key)
    end
  end
  if last then
    redis.call('SPUBLISH', T .. ':bell:' .. inbox, last)
    if redis.call('EXISTS', T .. ':run:' .. inbox) == 0 then
      local seconds = string.sub(inbox, 1, 7) == 'thread:' and ${threadFor} or ${keptFor}
      for _, key in ipairs({ positions, list }) do redis.call('EXPIRE', key, seconds) end
    end
  end
  return results
end
`
