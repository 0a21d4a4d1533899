/**
 * Lists of runs. Each partition returns its own, newest first, and they are merged by `n`. Titles are searched by their suffixes: see
 * index-script.ts.
 */
import type { DueRun, RunIndex, RunQuery, RunRow } from '../../part/log.ts'
import type { OwnerFilter } from '../../part/principal.ts'
import { decodeView } from '../encode.ts'
import { limitOf, queryWords, sortedPage, statusesOf, unsorted } from '../run-query.ts'
import { dueAt, isShown, publicRow, type StoredRow } from '../run-row.ts'
import { unknownCursor } from '../store-error.ts'
import type { RedisConnection } from './connection.ts'
import { ownerSets, partitions } from './index-script.ts'
import type { Partition } from './keys.ts'
import { readScript, readSet } from './read-script.ts'
import type { Rows } from './rows.ts'
import { aheadScript, damagedIs, damagedKey } from './damage-script.ts'

/*
 * Lists runs of one partition, newest first. It scans the smallest of the sorted sets that the query names, from the cursor down, and checks each
 * run there; at most `budget` runs per call. What has no field of its own is read off its row: fewer.
 *
 * KEYS: `T:clock`. ARGV: the query as JSON: `agent`, `thread`, `user`, `tenant`, `statuses`, `words`, `prefix`, `since` and `until` (epoch ms), `row` (conditions: `model`, `protocol`, `minCost` …), `before` (an upper bound of `n`,
 * as Redis has it), `most`. Returns the bound for the next call, or '' at the end, and then runs and their `n`.
 */

/** Maximum number of runs that are checked at once. */
const budget = 2000
const rowBudget = 400
/** A word that occurs in more pieces of words than this is too common to be a useful filter. */
const mostPieces = 200

const listScript = String.raw`
local T = string.sub(KEYS[1], 1, -7)
${aheadScript}${ownerSets}
local q = cjson.decode(ARGV[1])
local found = { '' }

local function isBetween(value, min, max)
  if not min and not max then return true end
  return type(value) == 'number' and (not min or value >= min) and (not max or value <= max)
end

local function fitsRow(run)
  local texts = redis.pcall('HMGET', T .. ':run:' .. run, 'row', 'at')
  local isJson, row = pcall(cjson.decode, texts[1] or '')
  if not isJson or type(row) ~= 'table' then return false end
  local r = q.row
  if r.protocol and row.protocol ~= r.protocol then return false end
  if not isBetween(row.cost, r.minCost, r.maxCost) then return false end
  local ended, started = row.endedAt or tonumber(texts[2]), row.startedAt
  if type(ended) ~= 'number' or type(started) ~= 'number' then return false end
  if not isBetween(ended - started, r.minMs, r.maxMs) then return false end
  if not r.model then return true end
  for _, model in ipairs(type(row.models) == 'table' and row.models or {}) do
    if model == r.model then return true end
  end
  return false
end

-- One that is damaged may fit less often, and harms no other.
local function fits(run)
  local row = redis.pcall('HMGET', T .. ':run:' .. run, 'agent', 'thread', 'status', 'started', 'title', 'origin', 'user', 'tenant')
  if not row[1] or (q.agent and row[1] ~= q.agent) or (q.thread and row[2] ~= q.thread) then return false end
  if (q.user and (row[7] or '') ~= q.user) or (q.tenant and (row[8] or '') ~= q.tenant) then return false end
  -- A fork of an older version has the start of its source: its place says when it was made.
  if q.since and not row[6] and (tonumber(row[4]) or 0) < q.since then return false end
  if q['until'] and (tonumber(row[4]) or 0) >= q['until'] then return false end
  if q.prefix and string.sub(run, 1, #q.prefix) ~= q.prefix then return false end
  for _, word in ipairs(q.words) do
    if not string.find(row[5] or '', word, 1, true) then return false end
  end
  local isOfStatus = not q.statuses
  for _, status in ipairs(q.statuses or {}) do isOfStatus = isOfStatus or row[3] == status end
  return isOfStatus and (not q.row or fitsRow(run))
end

-- The sets that have all runs that fit: those with the fewest runs. Not those that are damaged.
local keys, size
local function offer(sets)
  local sum = 0
  for _, key in ipairs(sets) do
    local count = redis.pcall('ZCARD', key)
    if type(count) == 'table' then return end
    sum = sum + count
  end
  if not size or sum < size then keys, size = sets, sum end
end
offer({ T .. ':runs' })
if not keys then return redis.error_reply('${damagedKey} ' .. T .. ':runs is no zset') end
if q.agent then offer({ T .. ':agent:' .. q.agent }) end
if q.thread then offer({ T .. ':thread:' .. q.thread }) end
if q.user and q.user ~= '' then offer({ T .. ':' .. (q.tenant and setOfUser(q.user, q.tenant) or 'user:' .. q.user) }) end
if q.tenant and q.tenant ~= '' then offer({ T .. ':tenant:' .. q.tenant }) end
if q.statuses then
  local sets = {}
  for i, status in ipairs(q.statuses) do sets[i] = T .. ':status:' .. status end
  offer(sets)
end
for _, word in ipairs(q.words) do
  local start = string.sub(word, 1, 24)
  local entries = redis.pcall('ZRANGEBYLEX', T .. ':words', '[' .. start, '[' .. start .. '\255', 'LIMIT', 0, ${mostPieces + 1})
  if not entries.err and #entries <= ${mostPieces} then
    local sets, seen = {}, {}
    for _, entry in ipairs(entries) do
      local piece = string.sub(entry, string.find(entry, '\0', 1, true) + 1)
      if not seen[piece] then sets[#sets + 1] = T .. ':word:' .. piece end
      seen[piece] = true
    end
    offer(sets)
  end
end

-- A run that began at this time or later is not below this place.
local floor = '-inf'
if q.since then
  floor = string.format('%.0f', toPlace(q.since - readAhead()) - ${partitions})
end

-- Some of the runs below a place, newest first, and the place down to which they are all.
local function below(before, count)
  local runs, seen, down = {}, {}, nil
  for _, key in ipairs(keys) do
    local some = redis.call('ZREVRANGEBYSCORE', key, before, floor, 'WITHSCORES', 'LIMIT', 0, count)
    for i = 1, #some, 2 do
      local n = tonumber(some[i + 1])
      if not seen[some[i]] then runs[#runs + 1] = { some[i], some[i + 1], n } end
      seen[some[i]] = true
      if i == 2 * count - 1 and (not down or n > down) then down = n end
    end
  end
  if #keys > 1 then table.sort(runs, function(a, b) return a[3] > b[3] end) end
  return runs, down
end

-- Runs by name, if they are fewer.
local function named()
  local ids = redis.pcall('ZRANGEBYLEX', T .. ':ids', '[' .. q.prefix, '[' .. q.prefix .. '\255', 'LIMIT', 0, ${budget / 4})
  if ids.err or #ids >= ${budget / 4} or #ids >= size then return nil end
  local open = string.sub(q.before, 1, 1) == '('
  local upper = open and tonumber(string.sub(q.before, 2)) or math.huge
  local runs = {}
  for _, run in ipairs(ids) do
    local score = redis.call('ZSCORE', T .. ':runs', run)
    if score and tonumber(score) < upper then runs[#runs + 1] = { run, score, tonumber(score) } end
  end
  table.sort(runs, function(a, b) return a[3] > b[3] end)
  return runs
end

local runs = q.prefix and named() or nil
local left, count, before, down = q.row and ${rowBudget} or ${budget}, q.most, q.before, nil
if not runs then runs, down = below(before, count) end
while true do
  for _, each in ipairs(runs) do
    if down and each[3] < down then break end
    left = left - 1
    if fits(each[1]) then
      found[#found + 1] = each[1]
      found[#found + 1] = each[2]
      if #found > 2 * q.most then
        found[1] = '(' .. each[2]
        return found
      end
    end
  end
  if not down then return found end
  before = '(' .. string.format('%.0f', down)
  if left <= 0 then
    found[1] = before
    return found
  end
  count = math.min(2 * count, 256)
  runs, down = below(before, count)
end
`

interface ListPosition {
  run: string
  n: number
}

/** The known part of a partition's list. */
interface Listing {
  partition: Partition
  places: ListPosition[]
  /** An upper bound of the unknown part, as Redis has it. */
  rest: string
}

const listIn = readScript(listScript)
/** Number of rows that are requested at once. */
const rowPage = 1000
/** Number of due runs that are requested from a partition at once. */
const duePage = 1000

export function createRunIndex(connection: RedisConnection, rows: Rows): Omit<RunIndex, 'keepView'> {
  const { keys, ask } = connection
  const all = Array.from({ length: partitions }, (_, partition): Partition => partition)

  async function rowsOf(runs: readonly string[]): Promise<StoredRow[]> {
    const known = await Promise.all(runs.map((run) => rows.find(run)))
    return known.flatMap((each) => each?.row ?? [])
  }

  /** A run that the filter does not show is unknown, and found out to be so in the same time. */
  async function placeOf(run: string, filter: OwnerFilter): Promise<string> {
    const key = `${keys.tagOf(run)}:runs`
    const isFiltered = filter.owner !== undefined || filter.tenant !== undefined
    const [n, owned] = await Promise.all([ask('list runs', key, ['ZSCORE', key, run]), isFiltered && ownerOf(run)])
    if (n === null || (owned && !isShown(owned, filter))) throw unknownCursor(run)
    return n as string
  }

  async function ownerOf(run: string): Promise<OwnerFilter> {
    const key = keys.run(run)
    const asked = ask('list runs', key, ['HMGET', key, 'user', 'tenant']).catch(damagedIs([]))
    const [owner, tenant] = (await asked) as (string | null)[]
    return { owner: owner ?? '', tenant: tenant ?? '' }
  }

  async function select(query: RunQuery): Promise<ListPosition[]> {
    const { agent, threadId: thread, owner: user, tenant, idPrefix, since, until } = query
    const { model, protocol, minCost, maxCost, minMs, maxMs } = query
    const ofRow = { model, protocol, minCost, maxCost, minMs, maxMs }
    const row = Object.values(ofRow).some((value) => value !== undefined) ? ofRow : undefined
    const statuses = statusesOf(query.status)
    const limit = limitOf(query)
    const start = query.before === undefined ? '+inf' : `(${await placeOf(query.before, query)}`
    if (statuses?.length === 0) return []
    const words = [...queryWords(query.q), ...queryWords(query.search)]
    // In a long list most partitions have about the same share.
    const most = Math.ceil((limit / partitions) * 1.5) + 4
    const conditions = {
      agent,
      thread,
      user,
      tenant,
      prefix: idPrefix || undefined,
      statuses,
      since,
      until,
      row,
      words,
      most,
    }
    const listings = all.map((partition): Listing => ({ partition, places: [], rest: start }))
    for (;;) {
      const found = listings.flatMap(({ places }) => places).toSorted((a, b) => b.n - a.n)
      const last = found[limit - 1]?.n ?? -Infinity
      const open = listings.filter(({ rest }) => rest !== '' && (rest === '+inf' || Number(rest.slice(1)) > last))
      if (open.length === 0) return found.slice(0, limit)
      await Promise.all(
        open.map(async (listing) => {
          const asked = JSON.stringify({ ...conditions, before: listing.rest })
          const [rest, ...runs] = await listIn(connection, 'list runs', listing.partition, [asked])
          listing.rest = rest!
          for (let i = 0; i < runs.length; i += 2) listing.places.push({ run: runs[i]!, n: Number(runs[i + 1]) })
        }),
      )
    }
  }

  async function list(query: RunQuery): Promise<RunRow[]> {
    const places = await select(query)
    const found: StoredRow[] = []
    for (let at = 0; at < places.length; at += rowPage)
      found.push(...(await rowsOf(places.slice(at, at + rowPage).map(({ run }) => run))))
    return found.map(publicRow)
  }

  /** The first due runs of a partition. A lost claim may have left runs that are not due. */
  async function dueIn(partition: Partition, before: number, limit: number): Promise<DueRun[]> {
    const found: DueRun[] = []
    for (let at = 0; found.length < limit; at += duePage) {
      const page = ['ZRANGEBYSCORE', '-inf', String(before), 'LIMIT', String(at), String(duePage)] as const
      const runs = await readSet<string>(connection, 'list due runs', partition, 'due', [...page])
      for (const row of await rowsOf(runs)) {
        const due = dueAt(row)
        if (due !== undefined && due <= before) found.push({ id: row.id, dueAt: due })
      }
      if (runs.length < duePage) break
    }
    return found
  }

  return {
    async get(run) {
      const known = await rows.load(run)
      return known && publicRow(known.row)
    },
    async list(query = {}) {
      if (query.sort === undefined) return list(query)
      const { before } = query
      const last = before === undefined ? undefined : (await rows.find(before))?.row
      return sortedPage(query, await list(unsorted(query)), last && publicRow(last))
    },
    async due(before, limit = 1000) {
      const found = await Promise.all(all.map((partition) => dueIn(partition, before, limit)))
      return found
        .flat()
        .toSorted((a, b) => a.dueAt - b.dueAt)
        .slice(0, limit)
    },
    async view(run) {
      const key = keys.run(run)
      const asked = await ask(`get the view of run ${run}`, key, ['HMGET', key, 'seq', 'viewSeq', 'view', 'origin'])
      const [last, seq, view, origin] = asked as (string | null)[]
      // Whoever gets none folds the log, and keeps what comes out. So does who gets a damaged one.
      if (typeof seq !== 'string' || !/^\d+$/u.test(seq) || Number(seq) > Number(last)) return undefined
      try {
        const kept = { seq: Number(seq), view: decodeView(view ?? '') }
        // An older version took the start of a fork for that of its source.
        const isRight = origin === null || (await rows.load(run))?.row.startedAt === startOf(kept.view)
        return isRight ? kept : undefined
      } catch {
        return undefined
      }
    },
  }
}

function startOf(view: unknown): unknown {
  return (view as { startedAt?: unknown } | null)?.startedAt
}
