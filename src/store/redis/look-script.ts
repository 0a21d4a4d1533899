/**
 * Reads changes of one partition. Before, it moves the partition's clock, so that nothing that is stored later comes at or before the
 * place up to which it reads: what was delivered is then all that there will ever be up to there.
 *
 * KEYS: `T:clock`. ARGV: after which place, up to which place, and how many bytes of entries, about. Returns the place up to which the
 * answer is complete, and for each change its place, run, first and last `seq` and lines; empty lines: they are not there any more.
 */

import { clockScript } from './damage-script.ts'

/** Limit of changes in an answer. */
const most = 256

export const lookScript = String.raw`#!lua flags=allow-oom
local T = string.sub(KEYS[1], 1, -7)
${clockScript}
local after, upto, left = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
readClock()
clock = math.max(clock, upto)
keepClock()
local found = { whole(upto) }
if upto <= after then return found end
-- What is damaged has nothing to say: who writes next makes it anew.
local items = redis.pcall('XRANGE', T .. ':changes', whole(after + 1), whole(upto), 'COUNT', ${most})
for i, item in ipairs(items) do
  local n = string.match(item[1], '^%d+')
  local run, first, last = item[2][2] or '', item[2][4] or '', item[2][6] or ''
  local stored = redis.pcall('XRANGE', T .. ':log:' .. run, last, last)[1]
  local lines = stored and stored[2][2] or ''
  for _, each in ipairs({ n, run, first, last, lines }) do found[#found + 1] = each end
  left = left - #lines
  if left <= 0 or i == ${most} then
    found[1] = n
    break
  end
end
return found
`
