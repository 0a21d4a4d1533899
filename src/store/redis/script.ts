/**
 * The script that changes a partition: a list of operations, and one result for each. An operation that does not fit changes nothing
 * and returns 0; one that fails returns the error, and the others are done.
 *
 * Its only key is `T:clock`; all others have the same hash tag. ARGV: for each operation its name and its arguments, as many as it takes.
 */
import { createHash } from 'node:crypto'
import { aheadScript, clockScript, damageScript } from './damage-script.ts'
import { fleetScript } from './fleet-script.ts'
import { forkScript } from './fork-script.ts'
import { inboxScript } from './inbox-script.ts'
import { indexScript } from './index-script.ts'
import { limitsScript } from './limits-script.ts'
import { logScript } from './log-script.ts'

const head = `
local T = string.sub(KEYS[1], 1, -7)
local at = 0
local function take() at = at + 1; return ARGV[at] end
local function takeList()
  local list = {}
  for i = 1, tonumber(take()) do list[i] = take() end
  return list
end
-- The place of the last change of this script.
local changed
local function ended(status) return status ~= 'running' and status ~= 'suspended' end
local ops = {}
`

const tail = `
local results = {}
while at < #ARGV do
  local name = take()
  -- The arguments of one that fails must not be taken for the next one.
  local count = tonumber(take())
  local next = at + count
  local id = ARGV[at + 1]
  local ok, result = pcall(ops[name])
  if ok then results[#results + 1] = result
  else results[#results + 1] = 'failed: ' .. named(type(result) == 'table' and result.err or tostring(result), id) end
  at = next
end
keepClock()
if changed then redis.call('SPUBLISH', T .. ':changed', changed) end
return results
`

const knowledge = [clockScript, damageScript, aheadScript, indexScript]
const doing = [fleetScript, logScript, inboxScript, limitsScript, forkScript]
export const script = [head, ...knowledge, ...doing, tail].join('\n')
export const sha = createHash('sha1').update(script).digest('hex')

/** The arguments of one operation. */
export function operation(name: string, args: readonly (string | number)[]): string[] {
  const list = [name, String(args.length)]
  for (const each of args) list.push(typeof each === 'string' ? each : String(each))
  return list
}

/** A list among the arguments. */
export function listed(values: readonly string[]): string[] {
  return [String(values.length), ...values]
}
