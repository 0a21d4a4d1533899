/** `/api/agents/:id/settings`: what a chat may change of an agent, and the agent's text with changes. Nothing is written. */
import { MillraceError } from '../../part/error.ts'
import type { AgentSettings, ChangedText, SettingFault, StepChange } from '../../part/agent-settings.ts'
import { withFix } from '../../pipeline/fault.ts'
import { changeSettings, placesOf } from '../../pipeline/change-settings.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { Agent } from '../../runtime/runtime.ts'
import { unknownAgent } from '../../runtime/runtime-errors.ts'
import { settingsOf } from '../agent-settings.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { readJson } from '../http/body.ts'
import { bad } from '../http/query.ts'
import { checkText, showsTexts, textIn } from './agents.ts'

const mostChanges = 100
/** Settings that are changed at once, and those times the characters of the text: it is read again for each. */
const mostSettings = 500
const mostWork = 5_000_000

export function mountAgentSettings(routes: Routes, { isPrivate }: HandlerContext): void {
  routes.get('/api/agents/:id/settings', 'agents.list', (context, request) => getSettings(context, request.param('id')))
  if (!isPrivate) return
  routes.post('/api/agents/:id/settings', 'agents.edit', (context, request) =>
    changedText(context, request.raw, request.param('id')),
  )
}

async function getSettings(context: RequestContext, name: string): Promise<Response> {
  return Response.json(await settingsIn(context, agentNamed(context, name)))
}

async function settingsIn(context: RequestContext, agent: Agent): Promise<AgentSettings> {
  const { runtime, agentEditor } = context
  const isShown = showsTexts(context)
  const settings = await settingsOf(agent, runtime, { known: agentEditor?.names, showsTexts: isShown })
  const file = isShown ? agentEditor?.read(agent.id)?.file : undefined
  return runtime.redact({ ...(file !== undefined && { file }), ...settings })
}

/**
 * Body: `{changes, text?}`. Answers with the `text` that the agent would have: that which it is served with, or the one of the request, with the
 * changes; and its `faults`, each with the setting that it is of. Without changes, also with the `settings` that it has.
 */
async function changedText(context: RequestContext, request: Request, name: string): Promise<Response> {
  context.editing.check(request)
  const body = await readJson(request, context.maxBodyBytes)
  const changes = changesIn(body)
  const agent = agentNamed(context, name)
  const given = body['text'] === undefined ? undefined : textIn(body)
  const { text: inlined, source = inlined } = agent.pipeline
  checkWork(given ?? source, changes)
  const text = changeSettings(given ?? source, changes)
  // As for its file: a text with a secret is not shown.
  if (context.runtime.redact(text) !== text)
    throw new MillraceError('forbidden', 'The text has a secret of this server.')
  const { faults, pipeline } = checkText(context, agent.id, text)
  const places = faults.length === 0 ? [] : placesOf(text, changes)
  const found = faults.map((fault): SettingFault => {
    const place = places.find(({ from, to }) => fault.line >= from && fault.line <= to)
    return { ...withFix(text, fault), ...(place && { step: place.step, setting: place.setting }) }
  })
  const isPlain = changes.length === 0 && faults.length === 0 && pipeline !== undefined
  const settings = isPlain ? await settingsIn(context, { id: agent.id, pipeline }) : undefined
  return Response.json({ text, faults: found, ...(settings && { settings }) } satisfies ChangedText)
}

function agentNamed({ runtime }: RequestContext, name: string): Agent {
  const agent = runtime.agents.get(name)
  if (agent === undefined) throw unknownAgent(name, runtime.agents)
  return agent
}

const keys: ReadonlySet<string> = new Set(['step', 'model', 'temperature', 'system', 'tools'])

function changesIn({ changes }: Record<string, unknown>): StepChange[] {
  if (!Array.isArray(changes) || changes.length > mostChanges)
    throw bad('changes', `a list of at most ${mostChanges} changes`)
  return changes.map((each: unknown, i) => toChange(each, `changes[${i}]`))
}

function checkWork(text: string, changes: readonly StepChange[]): void {
  const count = changes.reduce((sum, { tools = {}, ...others }) => {
    return sum + Object.keys(tools).length + Object.keys(others).length - 1
  }, 0)
  const most = Math.min(mostSettings, Math.max(1, Math.floor(mostWork / text.length)))
  if (count > most) throw bad('changes', `at most ${most} settings at once for a text of this length, not ${count}`)
}

function toChange(value: unknown, place: string): StepChange {
  if (!isMap(value)) throw bad(place, 'an object')
  for (const key of Object.keys(value)) {
    if (keys.has(key)) continue
    throw new MillraceError('bad-input', `unknown key "${key.slice(0, 60)}" in ${place}${didYouMean(key, keys)}`)
  }
  const { step, model, temperature, system, tools } = value
  if (typeof step !== 'string') throw bad(`${place}.step`, 'the path of a step, such as main/answer')
  for (const [key, text] of Object.entries({ model, system }))
    if (text != null && typeof text !== 'string') throw bad(`${place}.${key}`, 'a text, or null')
  if (temperature != null && typeof temperature !== 'number') throw bad(`${place}.temperature`, 'a number, or null')
  if (tools !== undefined && !(isMap(tools) && Object.values(tools).every((isOn) => typeof isOn === 'boolean')))
    throw bad(`${place}.tools`, 'an object: name → whether the step has it')
  return value as unknown as StepChange
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
