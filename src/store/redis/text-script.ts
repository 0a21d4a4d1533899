/**
 * The parts of the scripts that keep the texts that entries share (`shared-texts.ts`), once for each partition. A text is counted by the runs and the
 * lists that refer to it, and goes with the last of them. Each change is a part of the script that stores or deletes the entries.
 */

/** About what Redis needs for a text beside its characters: its key, and its place among all keys. */
const besides = 160

/** Needs `T` and damage-script.ts. */
export const textScript = String.raw`
-- T:text:<hash> has the number of uses, in ten digits; l for a list or v for a value; the text.
local function textKey(hash) return T .. ':text:' .. hash end

local function partsOf(list)
  local ok, items = pcall(cjson.decode, list)
  local parts, seen = {}, {}
  for _, item in ipairs(ok and items or {}) do
    if type(item) == 'string' and not seen[item] then
      seen[item] = true
      parts[#parts + 1] = item
    end
  end
  return parts
end

local function setUses(key, uses) redis.call('SETRANGE', key, 0, string.format('%010d', uses)) end

local function countBytes(bytes)
  if bytes == 0 then return end
  local sum = redis.pcall('INCRBY', T .. ':textsize', string.format('%.0f', bytes))
  if isRefused(sum) or sum <= 0 then redis.call('UNLINK', T .. ':textsize') end
end

-- Returns the bytes of what is gone.
local function dropText(hash)
  local key = textKey(hash)
  local head = redis.pcall('GETRANGE', key, 0, 10)
  local uses = type(head) == 'string' and tonumber(string.sub(head, 1, 10))
  if not uses then return 0 end
  if uses > 1 then
    setUses(key, uses - 1)
    return 0
  end
  local bytes = redis.call('STRLEN', key) + ${besides}
  local parts = string.sub(head, 11) == 'l' and partsOf(string.sub(redis.call('GET', key), 12)) or {}
  redis.call('UNLINK', key)
  for _, part in ipairs(parts) do bytes = bytes + dropText(part) end
  return bytes
end

-- The run refers to no text any more.
local function releaseTexts(run)
  local bytes = 0
  for _, hash in ipairs(hint('SMEMBERS', 'texts:' .. run)) do bytes = bytes + dropText(hash) end
  redis.call('UNLINK', T .. ':texts:' .. run)
  countBytes(-bytes)
end
`

/** For the script that stores entries: needs `textScript` and `takeList`. */
export const newTextScript = String.raw`
-- roots: what the entries refer to themselves. given: texts that may not be stored yet, with their kind; those in a list before it.
local function takeTexts()
  local roots, given = takeList(), {}
  for i = 1, tonumber(take()) do given[i] = { take(), take() } end
  return roots, given
end

local function hasText(hash)
  local key = textKey(hash)
  local head = redis.pcall('GETRANGE', key, 0, 10)
  local isText = type(head) == 'string' and (head == '' or string.find(head, '^%d%d%d%d%d%d%d%d%d%d[lv]$'))
  if not isText then error(damaged(key .. ' is no text')) end
  return head ~= ''
end

-- Before anything is written: whether each is given or stored.
local function haveTexts(run, roots, given)
  local found = redis.call('TYPE', T .. ':texts:' .. run).ok
  if found ~= 'none' and found ~= 'set' then error(damaged(T .. ':texts:' .. run .. ' is a ' .. found .. ', and not a set')) end
  local known = {}
  local function isKnown(hash)
    if known[hash] == nil then known[hash] = hasText(hash) end
    return known[hash]
  end
  for _, text in ipairs(given) do
    if not isKnown(text[1]) then
      text.parts = string.sub(text[2], 1, 1) == 'l' and partsOf(string.sub(text[2], 2)) or {}
      for _, part in ipairs(text.parts) do
        if not isKnown(part) then return false end
      end
      text.isNew = true
      known[text[1]] = true
    end
  end
  for _, hash in ipairs(roots) do
    if not isKnown(hash) then return false end
  end
  return true
end

local function useText(hash)
  local key = textKey(hash)
  setUses(key, tonumber(redis.call('GETRANGE', key, 0, 9)) + 1)
end

local function putTexts(run, roots, given)
  local bytes = 0
  for _, text in ipairs(given) do
    if text.isNew then
      redis.call('SET', textKey(text[1]), '0000000000' .. text[2])
      bytes = bytes + #text[2] + 10 + ${besides}
      for _, part in ipairs(text.parts) do useText(part) end
    end
  end
  for _, hash in ipairs(roots) do
    if redis.call('SADD', T .. ':texts:' .. run, hash) == 1 then useText(hash) end
  end
  countBytes(bytes)
end
`
