/** `/api/agents…`: the agents, their files, and an editor for them. */
import type { AgentCheck } from '../../part/agent-tree.ts'
import { MillraceError } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'
import { treeOf } from '../../pipeline/agent-tree.ts'
import { faultsOf, withFix } from '../../pipeline/fault.ts'
import { parsePipeline } from '../../pipeline/parse.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { AgentEditor, CheckedText, Moved } from '../../project/agent-editor.ts'
import { listedAgents, unknownAgent } from '../../runtime/runtime-errors.ts'
import { modelsOf } from '../agent-settings.ts'
import { describeAgent } from '../describe-agent.ts'
import { decide } from '../../access/decide.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { optionalText, readJson } from '../http/body.ts'
import { hashText } from '../http/key.ts'
import { bad } from '../http/query.ts'

/** `errors`: load errors of files. */
export function mountAgents(
  routes: Routes,
  { isPrivate }: HandlerContext,
  errors: () => { file: string; message: string }[],
): void {
  // Load errors quote the texts of agents.
  routes.get('/api/agents', 'agents.list', (context) => {
    const { agents } = context.runtime
    return Response.json({
      agents: listedAgents(agents).map((agent) => describeAgent(agent, agents)),
      errors: showsBroken(context) ? errors() : [],
    })
  })
  if (isPrivate) {
    routes.get('/api/agents/schema', 'agents.read', (context) => getSchema(context))
    routes.post('/api/agents/check', 'agents.edit', (context, { raw }) => checkAgent(context, raw))
    routes.post('/api/agents/:id', 'agents.edit', (context, request) =>
      saveAgent(context, request.raw, request.param('id')),
    )
    routes.post('/api/agents/:id/rename', 'agents.edit', (context, request) =>
      renameAgent(context, request.raw, request.param('id')),
    )
    routes.delete('/api/agents/:id', 'agents.edit', (context, request) =>
      removeAgent(context, request.raw, request.param('id')),
    )
  }
  routes.get('/api/agents/:id', 'agents.list', (context, request) => getAgent(context, request.param('id')))
}

export function showsTexts({ isPrivate, principal }: RequestContext): boolean {
  return isPrivate && decide(principal, 'agents.read') === 'allow'
}

/** An agent that cannot be loaded does not say to whom it is open: those who may see only some do not see it. */
export function showsBroken(context: RequestContext): boolean {
  const { agents, tenant } = context.principal
  return showsTexts(context) && agents === undefined && tenant === undefined
}

async function getAgent(context: RequestContext, name: string): Promise<Response> {
  const { runtime } = context
  const isShown = showsTexts(context)
  const agent = runtime.agents.get(name)
  const id = agent?.id ?? name
  // One that is not open to the caller does not exist for it, and neither does its file.
  const isOthers =
    agent === undefined && (!showsBroken(context) || context.server.runtime.agents.get(name) !== undefined)
  const file = isShown && !isOthers ? await fileOf(context, id, agent?.pipeline) : undefined
  if (agent === undefined && file === undefined) throw unknownAgent(name, runtime.agents)
  const { pipeline } = agent ?? {}
  return Response.json({
    id,
    ...(agent && describeAgent(agent, runtime.agents)),
    ...(pipeline && { hash: await hashText(pipeline.text) }),
    ...file,
    ...(pipeline && isShown && { tree: treeOf(pipeline) }),
  })
}

/** The file on disk: the agent may be served in an older version. A text with a secret is neither loaded nor shown. */
async function fileOf({ agentEditor, runtime }: HandlerContext, id: string, pipeline: Pipeline | undefined) {
  const found = agentEditor?.read(id)
  const text = found?.text ?? pipeline?.source ?? pipeline?.text
  if (text === undefined || runtime.redact(text) !== text) return undefined
  return { text, etag: await hashText(text), ...(found?.file !== undefined && { file: found.file }) }
}

async function getSchema({ server: { runtime, agentEditor } }: RequestContext): Promise<Response> {
  const { agentJsonSchema } = await import('../../pipeline/agent-schema.ts')
  const names = agentEditor?.names
  if (names === undefined) return Response.json(agentJsonSchema())
  const agents = runtime.agents.list()
  return Response.json(
    agentJsonSchema({ ...names, agents: agents.map(({ id }) => id), models: modelsOf(agents, names) }),
  )
}

/** Without files, an agent is checked alone: any tool name may be valid. */
export function checkText({ agentEditor }: Pick<HandlerContext, 'agentEditor'>, id: string, text: string): CheckedText {
  if (agentEditor !== undefined) return agentEditor.check(id, text)
  try {
    return { faults: [], pipeline: parsePipeline(text) }
  } catch (error) {
    return { faults: faultsOf(error) }
  }
}

export function toAgentCheck(text: string, { faults, pipeline }: CheckedText): AgentCheck {
  return { faults: faults.map((fault) => withFix(text, fault)), ...(pipeline && { tree: treeOf(pipeline) }) }
}

/** Body: `{id, text}`. Runs no code, and reads only prompt files of the agents folder. */
async function checkAgent(context: HandlerContext, request: Request): Promise<Response> {
  context.editing.check(request)
  const body = await readJson(request, context.maxBodyBytes)
  const text = textIn(body)
  return Response.json(toAgentCheck(text, checkText(context, optionalText(body, 'id') ?? '', text)))
}

/** Body: `{text, etag}`; no `etag` for a new agent. 409 with the text on disk, 422 with the faults of the text. */
async function saveAgent(context: HandlerContext, request: Request, id: string): Promise<Response> {
  const editor = editorOf(context, request)
  const body = await readJson(request, context.maxBodyBytes)
  const text = textIn(body)
  const etag = optionalText(body, 'etag')
  const before = editor.read(id)
  if (etag !== undefined && (before === undefined || (await hashText(before.text)) !== etag)) {
    return conflict(context, before ?? null)
  }
  const checked = editor.check(id, text)
  if (checked.faults.length > 0) return Response.json(toAgentCheck(text, checked), { status: 422 })
  // The write detects changes since the check.
  const saved = editor.save(id, text, etag === undefined ? undefined : before!.text)
  if (saved.conflict !== undefined) return conflict(context, saved.conflict)
  return Response.json({ id, etag: await hashText(text), ...toAgentCheck(text, checked) })
}

/** Body: `{to, etag}`. 409 with the text on disk, or with the agents that call it. */
async function renameAgent(context: HandlerContext, request: Request, id: string): Promise<Response> {
  const editor = editorOf(context, request)
  const body = await readJson(request, context.maxBodyBytes)
  const to = textIn(body, 'to', 'the new id of the agent')
  const text = await textOfEtag(editor, id, textIn(body, 'etag', 'the etag of its file'))
  return moved(context, to, text ?? { conflict: editor.read(id) ?? null }, (was) => editor.rename(id, to, was))
}

/** `?etag=`. The same answers. */
async function removeAgent(context: HandlerContext, request: Request, id: string): Promise<Response> {
  const editor = editorOf(context, request)
  const etag = new URL(request.url).searchParams.get('etag')
  if (etag === null) throw bad('etag', 'the etag of its file')
  const text = await textOfEtag(editor, id, etag)
  return moved(context, id, text ?? { conflict: editor.read(id) ?? null }, (was) => editor.remove(id, was))
}

function editorOf(context: HandlerContext, request: Request): AgentEditor {
  context.editing.check(request)
  if (context.agentEditor !== undefined) return context.agentEditor
  throw new MillraceError('forbidden', 'The agents of this program are in its code.')
}

async function textOfEtag(editor: AgentEditor, id: string, etag: string): Promise<string | undefined> {
  const text = editor.read(id)?.text
  return text !== undefined && (await hashText(text)) === etag ? text : undefined
}

async function moved(
  context: HandlerContext,
  id: string,
  text: string | Moved,
  move: (was: string) => Moved,
): Promise<Response> {
  const { conflict: theirs, callers } = typeof text === 'string' ? move(text) : text
  if (theirs !== undefined) return conflict(context, theirs)
  if (callers === undefined) return Response.json({ id })
  const [call, those] = callers.length === 1 ? ['calls', 'it'] : ['call', 'them']
  const message = `${callers.join(', ')} ${call} this agent. Change ${those} first.`
  return Response.json(
    { error: { message, type: 'invalid_request_error', code: 'agent-called' }, callers },
    { status: 409 },
  )
}

async function conflict({ runtime }: HandlerContext, theirs: { text: string } | null): Promise<Response> {
  const message = theirs === null ? 'The file is gone.' : 'The file has changed on disk.'
  const error = { message, type: 'invalid_request_error', code: 'agent-changed' }
  const isShown = theirs !== null && runtime.redact(theirs.text) === theirs.text
  const now = isShown ? { text: theirs.text, etag: await hashText(theirs.text) } : null
  return Response.json({ error, theirs: now }, { status: 409 })
}

export function textIn(body: Record<string, unknown>, key = 'text', what = 'the YAML of an agent'): string {
  const text = ownValue(body, key)
  if (typeof text !== 'string') throw bad(key, what)
  return text
}
