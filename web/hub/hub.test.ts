/** The hub with tabs that are functions, and a real server: one connection, and each tab gets exactly what it follows. */
import { expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import { foldRun } from '../../src/fold/run-fold.ts'
import { createScriptedModel, finish, latch, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import type { AccessRequest } from '../../src/server/access/access.ts'
import { createTestAccess } from '../../test/support/callers.ts'
import { agent, entriesOf } from '../../test/support/engine.ts'
import { type Following, open } from './testing/hub-scene.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const says = (...script: ScriptStep[][]) => createScriptedModel(script)
const delta = (word: string): ScriptStep => ({ type: 'text-delta', id: 't', delta: word })
const turn = (...steps: ScriptStep[]): ScriptStep[] => [
  { type: 'text-start', id: 't' },
  ...steps,
  { type: 'text-end', id: 't' },
  finish(),
]

const ended = ({ type }: Entry) => type === 'run-end'
const ends = (word: string) => (entry: Entry) => entry.type === 'text-delta' && entry.delta.endsWith(word)
const seqs = (entries: readonly Entry[]) =>
  entries.flatMap(({ seq, firstSeq = seq }) => Array.from({ length: seq - firstSeq + 1 }, (_, i) => firstSeq + i))
const viewOf = (entries: readonly Entry[]) => {
  const fold = foldRun()
  for (const entry of entries) fold.apply(entry)
  return fold.view()
}

test('eight tabs have one connection, and each has a token before the model goes on; a ninth joins in the middle', async () => {
  const gates = [latch(), latch()]
  const { state, first, openTab, follow } = await open({
    scripts: { m: says(turn(delta('one '), gates[0]!, delta('two '), gates[1]!, delta('three'))) },
  })
  const run = await first.runtime.start('a', { messages })
  const tabs = Array.from({ length: 8 }, () => follow(openTab().tab, run.id))
  await Promise.all(tabs.map((each) => each.until(ends('one '))))
  gates[0]!.open()
  await Promise.all(tabs.map((each) => each.until(ends('two '))))
  expect(state.streams).toBe(1)
  const before = state.urls.filter((url) => url.startsWith('/api/live')).length
  // From the start, from the middle, and from where the connection is.
  const late = [0, 3, tabs[0]!.entries.at(-1)!.seq].map(
    (after) => [after, follow(openTab().tab, run.id, after)] as const,
  )
  await Promise.all(late.slice(0, 2).map(([, each]) => each.until(ends('two '))))
  gates[1]!.open()
  for (const each of [...tabs, ...late.map(([, one]) => one)]) await each.until(ended)
  const all = await entriesOf(first.store, run.id)
  for (const { entries } of tabs) expect(seqs(entries)).toEqual(all.map(({ seq }) => seq))
  for (const [after, { entries }] of late) expect(seqs(entries)).toEqual(all.slice(after).map(({ seq }) => seq))
  expect(viewOf(late[0]![1].entries)).toEqual(viewOf(all))
  // Who comes later needs no other connection.
  expect(state.urls.filter((url) => url.startsWith('/api/live')).length).toBe(before)
  expect(state.most).toBeLessThanOrEqual(2)
})

test('runs come and go while others stream: nothing is missing or doubled, and nothing is followed for nobody', async () => {
  const words = Array.from({ length: 300 }, (_, i) => `${i} `)
  const script = () => turn(...words.map(delta))
  const { state, first, openTab, follow } = await open({ scripts: { m: says(script(), script(), script(), script()) } })
  const [one, two] = [openTab().tab, openTab().tab]
  const followed: [string, Following][] = []
  for (let i = 0; i < 4; i++) {
    const run = await first.runtime.start('a', { messages })
    followed.push([run.id, follow(one, run.id)], [run.id, follow(two, run.id)])
    const passing = follow(two, run.id, 2)
    await passing.until(() => true)
    passing.leave()
  }
  for (const [, each] of followed) await each.until(ended)
  for (const [run, { entries }] of followed) {
    expect(seqs(entries)).toEqual((await entriesOf(first.store, run)).map(({ seq }) => seq))
  }
  const rows: RunRow[] = []
  const seen = Promise.withResolvers<void>()
  one.rows((more) => {
    rows.push(...more)
    if (new Set(rows.map(({ id }) => id)).size === 4) seen.resolve()
  })
  await seen.promise
  expect(state.urls.at(-1)).toBe('/api/live?agents=1&rows=1')
  // Others get the rows that the hub has.
  const other = Promise.withResolvers<void>()
  two.rows((more) => more.length === 4 && other.resolve())
  await other.promise
})

test('the server is killed and comes back: tabs go on where they were; another log is told as such', async () => {
  const gate = latch()
  const { state, first, launch, openTab, follow } = await open({
    scripts: { m: says(turn(delta('one '), gate, delta('two'))) },
  })
  const run = await first.runtime.start('a', { messages })
  const tabs = [openTab(), openTab()]
  const following = tabs.map(({ tab }) => follow(tab, run.id))
  await Promise.all(following.map((each) => each.until(ends('one '))))
  state.server = undefined
  await first.close()
  await expect.poll(() => tabs.map((tab) => tab.state())).toEqual(['offline', 'offline'])
  expect((tabs[0]!.tab.connection as { retryAt: number }).retryAt).toBeGreaterThan(0)
  const again = await launch({ dir: first.dir, keep: true })
  state.server = again
  for (const { tab } of tabs) tab.retry()
  await again.runtime.recover()
  for (const each of following) await each.until(ended)
  const all = await entriesOf(again.store, run.id)
  for (const { entries } of following) expect(seqs(entries)).toEqual(all.map(({ seq }) => seq))
  const rest = [follow(tabs[0]!.tab, run.id, all.length + 5), follow(tabs[1]!.tab, 'run_none')]
  await expect.poll(() => rest.map(({ gone }) => gone)).toEqual([['lost'], ['unknown']])
})

test('a tab gets one message for what comes together', async () => {
  const words = Array.from({ length: 2000 }, (_, i) => `${i} `)
  const { first, openTab, follow } = await open({ scripts: { m: says(turn(...words.map(delta))) } })
  const tab = openTab()
  const began = performance.now()
  const run = await first.runtime.start('a', { messages })
  const following = follow(tab.tab, run.id)
  await following.until(ended)
  expect(tab.batches.length).toBeLessThanOrEqual((performance.now() - began) / 16 + 3)
})

test('a key goes in a header; tabs with the same key share a connection', async () => {
  const { state, first, openTab, follow } = await open(
    { scripts: { m: says([text('a'), finish()]) } },
    { apiKey: 'secret-key-1' },
  )
  const run = await first.runtime.start('a', { messages })
  const tab = openTab()
  await expect.poll(() => tab.state()).toBe('unauthorized')
  const following = follow(tab.tab, run.id)
  tab.tab.setKey('wrong')
  await expect.poll(() => state.urls.length).toBe(2)
  await expect.poll(() => tab.state()).toBe('unauthorized')
  tab.tab.setKey('secret-key-1')
  await following.until(ended)
  const other = openTab({ key: 'secret-key-1' })
  await follow(other.tab, run.id).until(ended)
  expect(other.state()).toBe('open')
  await expect.poll(() => state.streams).toBe(1)
  expect(state.urls.join()).not.toContain('secret')
})

test('tabs of different people never get each other’s rows', async () => {
  const { first, openTab } = await open({ scripts: { m: says([text('a'), finish()]) } }, { access: createTestAccess() })
  const seen = (key?: string) => {
    const tab = openTab(key === undefined ? {} : { key })
    const rows: RunRow[] = []
    tab.tab.rows((more) => rows.push(...more))
    return { tab, rows }
  }
  const [operator, alice, bob, nobody] = [seen('operator'), seen('alice'), seen('bob'), seen()]
  await expect.poll(() => operator.tab.state()).toBe('open')
  await expect.poll(() => bob.tab.state()).toBe('open')
  const run = await first.runtime.start('a', { messages }, { user: { id: 'alice', tenant: 'acme' } })
  await run.result
  await expect.poll(() => [operator, alice].map(({ rows }) => rows.at(-1)?.status)).toEqual(['completed', 'completed'])
  expect([bob, nobody].map(({ rows }) => rows)).toEqual([[], []])
  expect(nobody.tab.state()).toBe('unauthorized')
  // The tab of the operator is bob's now.
  operator.rows.length = 0
  operator.tab.tab.setKey('bob')
  await expect.poll(() => operator.tab.batches.some(({ forgotten }) => forgotten)).toBe(true)
  await expect.poll(() => operator.tab.state()).toBe('open')
  const own = await first.runtime.start('a', { messages }, { user: { id: 'bob', tenant: 'acme' } })
  await expect.poll(() => bob.rows.some(({ id }) => id === own.id)).toBe(true)
  await expect.poll(() => operator.rows.some(({ id }) => id === own.id)).toBe(true)
  expect(operator.rows.map(({ owner }) => owner)).not.toContain('alice')
  await own.result
})

test('when somebody else has signed in, by a cookie, the stream is opened again', async () => {
  let cookie = 'alice'
  const access = createTestAccess()
  const byCookie = {
    ...access,
    identify: (request: AccessRequest) =>
      access.identify({ ...request, headers: new Headers({ authorization: `Bearer ${cookie}` }) }),
  }
  const { first, state, openTab } = await open({ scripts: { m: says([text('a'), finish()]) } }, { access: byCookie })
  const tab = openTab()
  const rows: RunRow[] = []
  tab.tab.rows((more) => rows.push(...more))
  tab.tab.setCaller('alice')
  await expect.poll(() => tab.state()).toBe('open')
  cookie = 'bob'
  const before = state.urls.length
  tab.tab.setCaller('alice')
  tab.tab.setCaller('bob')
  await expect.poll(() => state.urls.length).toBe(before + 1)
  const own = await first.runtime.start('a', { messages }, { user: { id: 'bob', tenant: 'acme' } })
  await expect.poll(() => rows.some(({ id }) => id === own.id)).toBe(true)
  await own.result
})

test('a held run is held while the connection changes, until its tab has gone', async () => {
  const held = (): ScriptStep[] => turn(delta('a'), latch())
  const { first, openTab, follow, state } = await open({
    agents: { a: agent('', 'onDisconnect: cancel') },
    scripts: { m: says(held(), held()) },
  })
  const run = await first.runtime.start('a', { messages })
  const [tab, other] = [openTab(), openTab()]
  tab.tab.hold(run.id)
  await follow(tab.tab, run.id).until(ends('a'))
  const next = await first.runtime.start('a', { messages })
  const watched = follow(other.tab, run.id)
  const before = state.urls.length
  await follow(other.tab, next.id).until(ends('a'))
  expect(state.urls.length).toBeGreaterThan(before)
  expect((await first.store.runs.get(run.id))!.status).toBe('running')
  tab.tab.detach()
  await watched.until(ended)
  expect((await first.store.runs.get(run.id))!.status).toBe('aborted')
})

test('a tab that was forgotten says everything again', async () => {
  const gate = latch()
  const { first, openTab, follow } = await open({ scripts: { m: says(turn(delta('one '), gate, delta('two'))) } })
  const run = await first.runtime.start('a', { messages })
  const [tab, other] = [openTab(), openTab()]
  const following = follow(tab.tab, run.id)
  await following.until(ends('one '))
  tab.send({ kind: 'bye' })
  tab.tab.ping()
  gate.open()
  await following.until(ended)
  expect(seqs(following.entries)).toEqual((await entriesOf(first.store, run.id)).map(({ seq }) => seq))
  expect(tab.batches.filter(({ forgotten }) => forgotten)).toHaveLength(1)
  other.tab.detach()
})
