/** `/api/tests…`: the test cases of the agents folder, their results, and running them. They are what `millrace test` runs. */
import { messageOf, MillraceError } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'
import { runUserOf } from '../../part/principal.ts'
import type { Entry } from '../../part/entry.ts'
import { readTestResults, unknownTest, type NewTestResult, type TestResultRow } from '../../part/test-result.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { AnswerCheck, WantedCheck } from '../../regress/add-case.ts'
import type { CaseChange, FoundCase } from '../../regress/case-files.ts'
import type { Said } from '../../regress/new-recordings.ts'
import type { TestDesk, TestsRun } from '../../regress/test-desk.ts'
import { unknownAgent } from '../../runtime/runtime-errors.ts'
import type { RequestContext } from '../handler-context.ts'
import { optionalText, readJson } from '../http/body.ts'
import { bad, readQuery } from '../http/query.ts'
import type { Routes } from '../http/routes.ts'
import { sseResponse } from '../http/sse-response.ts'
import { untilExpired } from '../http/until-expired.ts'
import { createProgressSource } from '../live/tests-progress.ts'
import { showsBroken } from './agents.ts'
import { existingRun } from './existing-run.ts'

export function mountTests(routes: Routes): void {
  routes.get('/api/tests', 'tests.read', (context) => listTests(context))
  routes.post('/api/tests', 'tests.edit', (context, { raw }) => addTest(context, raw))
  routes.post('/api/tests/run', 'tests.edit', (context, { raw }) => runTests(context, raw))
  routes.post('/api/tests/results', 'tests.edit', (context, { raw }) => keepResults(context, raw))
  routes.post('/api/tests/stop', 'tests.edit', async (context, { raw }) => {
    context.editing.check(raw)
    return Response.json({ stopped: (await deskOf(context)).stop() })
  })
  routes.get('/api/tests/progress', 'tests.read', async (context) => {
    const desk = await deskOf(context)
    await desk.takeIn()
    const { onChange } = desk
    const shown = { onChange, run: () => shownRun(context, desk) }
    return sseResponse(untilExpired(createProgressSource(shown, context.keepAliveMs), context))
  })
  routes.get('/api/tests/draft', 'tests.edit', (context, { url }) => draftTest(context, new URL(url)))
  routes.get('/api/tests/:id', 'tests.read', (context, request) => showTest(context, request.param('id')))
  const changes = {
    accept: (desk, found, model) => desk.files.accept(found, model),
    discard: (desk, found, model) => desk.files.discard(found, model),
    undo: (desk, found) => desk.files.undo(found),
  } satisfies Record<string, ChangeTest>
  routes.post('/api/tests/:id/accept', 'tests.edit', (context, request) => changeTest(context, request, changes.accept))
  routes.post('/api/tests/:id/discard', 'tests.edit', (context, request) =>
    changeTest(context, request, changes.discard),
  )
  routes.post('/api/tests/:id/undo', 'tests.edit', (context, request) => changeTest(context, request, changes.undo))
  routes.post('/api/tests/:id/rename', 'tests.edit', async (context, request) => {
    context.editing.check(request.raw)
    const { desk, found } = await existingTest(context, request.param('id'))
    const body = await readKnown(context, request.raw, renameKeys)
    checkEtag(desk, found, ownValue(body, 'etag'))
    return showTest(context, await desk.rename(found, nameIn(body)))
  })
  routes.delete('/api/tests/:id', 'tests.edit', async (context, request) => {
    context.editing.check(request.raw)
    const { desk, found } = await existingTest(context, request.param('id'))
    checkEtag(desk, found, new URL(request.url).searchParams.get('etag'))
    await desk.remove(found)
    return Response.json({ id: found.id })
  })
}

async function deskOf({ tests }: RequestContext): Promise<TestDesk> {
  if (tests !== undefined) return tests()
  throw new MillraceError('bad-request', 'The agents of this program are in its code: it has no folder of test cases.')
}

/** A case of an agent that is not open to the caller does not exist for it. */
function isShown(context: RequestContext, agent: string): boolean {
  if (context.runtime.agents.get(agent) !== undefined) return true
  return context.server.runtime.agents.get(agent) === undefined && showsBroken(context)
}

async function existingTest(context: RequestContext, id: string): Promise<{ desk: TestDesk; found: FoundCase }> {
  const desk = await deskOf(context)
  const found = desk.files.find(id)
  if (isShown(context, found.file.agent)) return { desk, found }
  throw unknownTest(id)
}

/** Which cases run now is for those who see all of them. */
function shownRun({ runtime, server }: RequestContext, { run }: TestDesk): TestsRun | undefined {
  const isAll = server.runtime.agents.list().every(({ id }) => runtime.agents.get(id) !== undefined)
  return run && runtime.redact(isAll ? run : { ...run, running: [] })
}

/** Results that are read at the same time. */
const readAtOnce = 64

async function listTests(context: RequestContext): Promise<Response> {
  const desk = await deskOf(context)
  await desk.takeIn()
  const { cases, faults } = desk.files.read()
  const shown = cases.filter(({ file }) => isShown(context, file.agent))
  const rows: object[] = []
  for (let at = 0; at < shown.length; at += readAtOnce) {
    const some = shown.slice(at, at + readAtOnce)
    rows.push(...(await Promise.all(some.map((found) => rowOf(context, desk, found)))))
  }
  const body = { cases: rows, faults: showsBroken(context) ? faults : [], run: shownRun(context, desk) ?? null }
  return shownJson(context, body)
}

async function rowOf({ server }: RequestContext, desk: TestDesk, found: FoundCase): Promise<object> {
  const { id, file, test } = found
  const [last] = (await server.runtime.store.testResults?.of(id, 1)) ?? []
  return {
    id,
    agent: file.agent,
    file: file.path,
    line: test.line,
    name: test.name,
    turns: test.turns.length,
    ...(file.models !== undefined && { models: file.models }),
    isRecorded: desk.files.isRecorded(found),
    hasChange: desk.files.hasChange(found),
    ...(last && { last: shortened(last) }),
  }
}

/** The page of the case has the values. */
function shortened({ failures, warnings, ...row }: TestResultRow): object {
  return { ...row, failures: failures.map(({ what, message }) => ({ what, message })), warnings: warnings.length }
}

async function showTest(context: RequestContext, id: string): Promise<Response> {
  const { desk, found } = await existingTest(context, id)
  await desk.takeIn()
  const { files } = desk
  const results = (await context.server.runtime.store.testResults?.of(id)) ?? []
  const ids = [...new Set([...results.flatMap(({ run }) => run ?? []), ...(files.recordedRun(found) ?? [])])]
  const rows = await Promise.all(ids.map((run) => context.runtime.store.runs.get(run)))
  const known = new Set(rows.flatMap((row) => row?.id ?? []))
  const recorded = files.recordedRun(found)
  const text = files.textOf(found)
  const { test } = found
  return shownJson(context, {
    ...(await rowOf(context, desk, found)),
    etag: files.etagOf(found),
    strict: test.strict,
    tools: test.tools,
    text,
    cases: test.turns.map(({ input, answers, expect }) => ({ input, answers, expect })),
    ...(recorded !== undefined && known.has(recorded) && { recordedRun: recorded }),
    changes: files.changesOf(found).map(shownChange),
    canUndo: files.canUndo(found),
    // A link to a run that is not here leads nowhere.
    results: results.map(({ run, ...row }) => ({ ...row, ...(run !== undefined && known.has(run) && { run }) })),
    run: shownRun(context, desk) ?? null,
  })
}

const longestShown = 50_000
const mostTools = 200

/** Recordings may be long: the page shows as much as somebody reads. */
function shownChange({ runs, ...change }: CaseChange): object {
  const cut = (text: string) => (text.length > longestShown ? `${text.slice(0, longestShown)}…` : text).toWellFormed()
  const said = ({ answer, tools }: Said) => ({
    answer: cut(answer),
    tools: tools.slice(0, mostTools).map(({ name, input }) => cut(`${name} ${JSON.stringify(input)}`)),
  })
  const shown = runs.map(({ before, after, ...which }) => ({
    ...which,
    ...(before && { before: said(before) }),
    after: said(after),
  }))
  return { ...change, ...(change.expects !== undefined && { expects: cut(change.expects) }), runs: shown }
}

/** Files of people may contain secrets. */
function shownJson({ runtime }: RequestContext, body: object): Response {
  return Response.json(runtime.redact(body), { headers: { 'cache-control': 'no-store' } })
}

/** Of `GET /api/tests/draft?run=`: what a run would become, so that somebody can decide. */
async function draftTest(context: RequestContext, url: URL): Promise<Response> {
  const { run, name } = readQuery(url, { run: 512, name: 256 })
  if (run === undefined) throw bad('run', 'the id of a run')
  const desk = await deskOf(context)
  const { logs, programs } = await threadOf(context, run)
  const { id, target, test, ownPipeline } = desk.plan(logs, { name: name === '' ? undefined : name })
  const { expect } = test.turns.at(-1)!
  const [equals] = expect.text?.equals ?? []
  return shownJson(context, {
    id,
    file: target,
    name: test.name,
    turns: test.turns.length,
    outcome: expect.outcome,
    answer: equals ?? expect.text?.contains[0] ?? '',
    hasOutput: expect.json !== undefined,
    tools: expect.tools?.calls.map((call) => call.name) ?? [],
    ...(ownPipeline && { ownPipeline }),
    ...(programs && { programs }),
  })
}

const addKeys: ReadonlySet<string> = new Set(['run', 'name', 'answer', 'tools', 'strict', 'trust'])

/** Body: `{run, name?, answer?: {is, text?}, tools?, strict?, trust?}`. 201 with the id of the case, which is run if nothing else is. */
async function addTest(context: RequestContext, request: Request): Promise<Response> {
  context.editing.check(request)
  const body = await readKnown(context, request, addKeys)
  const run = optionalText(body, 'run')
  if (run === undefined) throw bad('run', 'the id of a run')
  const name = optionalText(body, 'name')
  const check: WantedCheck = {
    answer: readAnswer(body),
    tools: readFlag(body, 'tools'),
    strict: readFlag(body, 'strict'),
  }
  const trust = readFlag(body, 'trust')
  const desk = await deskOf(context)
  const { logs, programs } = await threadOf(context, run)
  if (programs !== undefined && trust !== true) {
    const message =
      'This run was recorded elsewhere, by an agent that differs from the one here. Send trust: true to add it.'
    return Response.json(
      { error: { message, type: 'invalid_request_error', code: 'foreign-run' }, programs },
      { status: 403 },
    )
  }
  const { id, file, test } = desk.add(logs, { name, check })
  const isFree = desk.run === undefined || desk.run.endedAt !== undefined
  const user = runUserOf(context.principal)
  if (isFree) desk.start({ ids: [id], user })
  return Response.json({ id, file: file.path, line: test.line, name: test.name, started: isFree }, { status: 201 })
}

/** The logs of a conversation up to a run, and what a recording made elsewhere names. */
async function threadOf(
  context: RequestContext,
  id: string,
): Promise<{ logs: Entry[][]; programs: string[] | undefined }> {
  const { store, agents } = context.runtime
  const { foreignLines, readThread } = await import('../../regress/read-thread.ts')
  const row = await existingRun(context, id)
  const agent = agents.get(row.agent)
  if (agent === undefined) throw unknownAgent(row.agent, agents)
  const read = async function* (run: string) {
    const { lastSeq } = await existingRun(context, run)
    for await (const batch of store.log.read(run, { before: lastSeq + 1 })) yield* batch
  }
  const { status } = row
  if (status === 'running' || status === 'suspended') {
    throw new MillraceError('bad-run', `The run ${id} has not ended. Wait for its end, then add it.`)
  }
  const logs = await readThread(read, id)
  return { logs, programs: foreignLines(logs, agent.pipeline.text) }
}

const runKeys: ReadonlySet<string> = new Set(['ids', 'agent', 'models', 'record', 'rest'])
const most = { ids: 5000, models: 20, results: 5000 }

/** Body: `{ids?, agent?, models?, record?}`, or `{rest: true}` for what the last run has not done. 202 with the run of tests; 409 while there is another one. */
async function runTests(context: RequestContext, request: Request): Promise<Response> {
  context.editing.check(request)
  const body = await readKnown(context, request, runKeys)
  const ids = readTexts(body, 'ids')
  const models = readTexts(body, 'models')
  const agent = optionalText(body, 'agent')
  const record = readFlag(body, 'record')
  const rest = readFlag(body, 'rest')
  if (rest === true && Object.keys(body).length > 1) throw bad('rest', 'alone: the rest is run as it was started')
  const desk = await deskOf(context)
  const shown = desk.files.read().cases.filter(({ file }) => isShown(context, file.agent))
  const known = new Set(shown.map(({ id }) => id))
  for (const id of ids ?? []) if (!known.has(id)) throw unknownTest(id)
  const agents = new Set(shown.flatMap(({ file }) => (agent === undefined || file.agent === agent ? [file.agent] : [])))
  // Those in the terminal were before these.
  await desk.takeIn()
  const run = desk.start({ ids, agents, models, record, rest, user: runUserOf(context.principal) })
  return Response.json({ run }, { status: 202 })
}

interface OfTest {
  raw: Request
  param(name: 'id'): string
}

type ChangeTest = (desk: TestDesk, found: FoundCase, model: string | undefined) => void

const changeKeys: ReadonlySet<string> = new Set(['etag', 'model'])

/** Body: `{etag, model?}`. Answers with the case as it is now. */
async function changeTest(context: RequestContext, request: OfTest, change: ChangeTest): Promise<Response> {
  context.editing.check(request.raw)
  const { desk, found } = await existingTest(context, request.param('id'))
  const body = await readKnown(context, request.raw, changeKeys)
  checkEtag(desk, found, ownValue(body, 'etag'))
  change(desk, found, optionalText(body, 'model'))
  return showTest(context, found.id)
}

const renameKeys: ReadonlySet<string> = new Set(['name', 'etag'])
const longestName = 200

function nameIn(body: Record<string, unknown>): string {
  const name = ownValue(body, 'name')
  if (
    typeof name === 'string' &&
    /\S/u.test(name) &&
    name.length <= longestName &&
    !/[\p{Cc}\u2028\u2029]/u.test(name)
  ) {
    return name.trim().toWellFormed()
  }
  throw bad('name', `a text of 1 to ${longestName} characters, in one line`)
}

/** What somebody decided about must be what is there. */
function checkEtag({ files }: TestDesk, found: FoundCase, etag: unknown): void {
  if (typeof etag !== 'string') throw bad('etag', 'the etag of the case')
  if (etag === files.etagOf(found)) return
  const cure = 'Load it again, then repeat what you did.'
  throw new MillraceError('tests-changed', `The case ${found.test.name} has changed since you read it. ${cure}`)
}

const resultKeys: ReadonlySet<string> = new Set(['results'])

/** Body: `{results}`, as `millrace test --url` sends them. 200 with how many were kept: those of cases that are here. Writes no file. */
async function keepResults(context: RequestContext, request: Request): Promise<Response> {
  const body = await readKnown(context, request, resultKeys)
  let results: NewTestResult[]
  try {
    results = readTestResults(ownValue(body, 'results'), most.results)
  } catch (error) {
    throw new MillraceError('bad-input', `${messageOf(error)}.`)
  }
  const desk = await deskOf(context)
  const user = runUserOf(context.principal)?.id ?? ''
  return Response.json({ kept: await desk.keep(results.map((row) => ({ ...row, user, source: 'terminal' }))) })
}

async function readKnown(
  { maxBodyBytes }: RequestContext,
  request: Request,
  keys: ReadonlySet<string>,
): Promise<Record<string, unknown>> {
  const body = await readJson(request, maxBodyBytes)
  for (const key of Object.keys(body)) {
    if (keys.has(key)) continue
    throw new MillraceError('bad-input', `unknown key "${key.slice(0, 60)}"${didYouMean(key, keys)}`)
  }
  return body
}

function readFlag(body: Record<string, unknown>, name: string): boolean | undefined {
  const value = ownValue(body, name)
  if (value === undefined || typeof value === 'boolean') return value
  throw bad(name, 'true or false')
}

function readTexts(body: Record<string, unknown>, name: 'ids' | 'models'): string[] | undefined {
  const value = ownValue(body, name)
  if (value === undefined) return undefined
  const isList = Array.isArray(value) && value.length > 0 && value.length <= most[name]
  if (isList && value.every((each) => typeof each === 'string' && each !== '' && each.length <= 512)) {
    return [...new Set(value as string[])]
  }
  throw bad(name, `a list of 1 to ${most[name]} texts`)
}

const checks: readonly AnswerCheck[] = ['equals', 'contains', 'not', 'any']
const longestAnswer = 100_000

function readAnswer(body: Record<string, unknown>): WantedCheck['answer'] {
  const value = ownValue(body, 'answer')
  if (value === undefined) return undefined
  const { is, text } = (typeof value === 'object' && value !== null ? value : {}) as { is?: unknown; text?: unknown }
  const known = checks.find((each) => each === is)
  if (known === undefined) throw bad('answer.is', `one of ${checks.join(', ')}`)
  if (text !== undefined && (typeof text !== 'string' || text.length > longestAnswer)) {
    throw bad('answer.text', `a text of at most ${longestAnswer} characters`)
  }
  return { is: known, text }
}
