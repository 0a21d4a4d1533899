/**
 * `subscriptions/listen`: a stream of what changes. The tasks that the client names, from whichever instance runs them, and the lists of tools and
 * prompts. A client that reads slowly gets the newest state of a task, not each one between.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
 */
import { fromPromises, type BodySource } from '../../delivery/streamed-body.ts'
import { lightResponse } from '../../delivery/light-response.ts'
import type { Entry } from '../../part/entry.ts'
import { hasEnded, type RunRow } from '../../part/log.ts'
import { ownValue } from '../../part/own-value.ts'
import { watchSilence } from '../http/sse-response.ts'
import { toResult, type Asked } from './asked.ts'
import { asEvents, asJson } from './call-stream.ts'
import { declaresTasks, metaKeys, missingTasks } from './inbound.ts'
import { codes, invalidParams, isObject, resultMessage, RpcError, toRpcError, type Fields } from './json-rpc.ts'
import { followNotes } from './notes.ts'
import { listPrompts } from './prompts.ts'
import { statusTypes } from './status.ts'
import { readTask } from './tasks.ts'
import { agentsIn, toTool } from './tools.ts'

/** Of one stream. */
const mostTasks = 1000
/** ms */
const longestSilence = 8000

interface Listened {
  /** The ids as the client has them. */
  tasks: { taskId: string; row: RunRow }[]
  tools: boolean
  prompts: boolean
}

export async function listen(asked: Asked): Promise<Response> {
  const { context, framing } = asked
  if (framing === asJson)
    throw new RpcError(codes.invalidRequest, 'The response is a stream: accept text/event-stream.', { status: 406 })
  const listened = await readFilter(asked)
  const place = await context.admission.stream()
  if (place instanceof Error) throw place
  const head = {
    'content-type': framing.contentType,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  }
  return lightResponse(
    head,
    createListenSource(asked, listened, () => place.leave()),
  )
}

/** Tasks that are not the caller's are left out, like those that do not exist. */
async function readFilter({ context, mcp, client, params }: Asked): Promise<Listened> {
  const filter = ownValue(params, 'notifications')
  if (!isObject(filter)) throw invalidParams('params.notifications must be an object.')
  const ids = ownValue(filter, 'taskIds')
  if (ids !== undefined && !declaresTasks(client)) throw missingTasks()
  const isList = Array.isArray(ids) && ids.length <= mostTasks && ids.every((id) => typeof id === 'string')
  if (ids !== undefined && !isList)
    throw invalidParams(`params.notifications.taskIds must be a list of at most ${mostTasks} ids.`)
  const { runs } = context.runtime.store
  const found = await Promise.all(
    [...new Set((ids ?? []) as string[])].map(async (taskId) => {
      const row = await mcp.tokens.openTask(taskId, context.principal, (run) => runs.get(run))
      return row === undefined ? [] : [{ taskId, row }]
    }),
  )
  return {
    tasks: found.flat(),
    tools: ownValue(filter, 'toolsListChanged') === true,
    prompts: ownValue(filter, 'promptsListChanged') === true,
  }
}

interface Watched {
  taskId: string
  run: string
  isNew: boolean
  /** What the client was told last. */
  told: string
}

function createListenSource(asked: Asked, { tasks, tools, prompts }: Listened, onClose: () => void): BodySource {
  const { context, id, params } = asked
  const { store } = context.runtime
  const leave = new AbortController()
  const { signal } = leave
  const _meta = { [metaKeys.subscription]: id }
  const watched = tasks.map(({ taskId, row }): Watched => ({ taskId, run: row.id, isNew: true, told: '' }))
  const lists = [
    ...(tools ? [{ method: 'notifications/tools/list_changed', read: () => toolsOf(asked) }] : []),
    ...(prompts ? [{ method: 'notifications/prompts/list_changed', read: () => promptsOf(asked) }] : []),
  ].map((list) => ({ ...list, told: list.read() }))
  let isListNew = false
  let isOver = false
  let isClosed = false
  let isBegun = false
  let wake = Promise.withResolvers<void>()
  const silence = watchSilence(Math.min(context.keepAliveMs, longestSilence), () =>
    source.sendKeepAlive?.(asEvents.keepAlive),
  )

  function changed(): void {
    wake.resolve()
  }

  const note = (method: string, fields: object) =>
    asEvents.message({ jsonrpc: '2.0', method, params: { ...fields, _meta } }, false)

  function acknowledged(): string {
    const given = ownValue(params, 'notifications') as Fields
    const notifications = {
      ...(tools && { toolsListChanged: true }),
      ...(prompts && { promptsListChanged: true }),
      ...(given['taskIds'] !== undefined && { taskIds: watched.map(({ taskId }) => taskId) }),
    }
    return note('notifications/subscriptions/acknowledged', { notifications })
  }

  async function stateOf(task: Watched): Promise<string> {
    task.isNew = false
    const row = await store.runs.get(task.run)
    // A run that was deleted: the next poll says so.
    if (row === undefined) return ''
    const state = await readTask(asked, task.taskId, row)
    // The time of the last entry alone is no change.
    const { lastUpdatedAt: _, pollIntervalMs: __, ...said } = state
    const text = JSON.stringify(said)
    if (text === task.told) return ''
    task.told = text
    return note('notifications/tasks', state)
  }

  function listsOf(): string {
    isListNew = false
    return lists
      .map((list) => {
        const now = list.read()
        if (now === list.told) return ''
        list.told = now
        return note(list.method, {})
      })
      .join('')
  }

  async function next(): Promise<string | undefined> {
    if (!isBegun) {
      isBegun = true
      return acknowledged()
    }
    while (!isClosed) {
      wake = Promise.withResolvers()
      let text = isListNew ? listsOf() : ''
      for (const task of watched) if (task.isNew) text += await stateOf(task)
      if (text === '' && isOver) {
        close()
        return asEvents.message(resultMessage(id, toResult(asked.client, { _meta })), true)
      }
      if (text !== '') {
        silence.wrote()
        return text
      }
      await wake.promise
    }
    return undefined
  }

  async function follow(task: Watched, { lastSeq, status }: RunRow): Promise<void> {
    const tell = () => {
      task.isNew = true
      changed()
    }
    if (hasEnded(status)) return
    const ended = new AbortController()
    const notes = followNotes(store.log, task.run, AbortSignal.any([signal, ended.signal]), tell)
    for await (const batch of store.log.read(task.run, { after: lastSeq, signal })) if (batch.some(isTold)) tell()
    ended.abort()
    tell()
    await notes
  }

  /** A store that closes ends what reads it: then the stream ends in good order. */
  async function untilClosing(): Promise<void> {
    await followNotes(store.log, 'listeners', signal, () => undefined)
    isOver = true
    changed()
  }

  const report = (error: unknown) => {
    if (signal.aborted) return
    if (toRpcError(error).status >= 500) context.onError(error)
    close()
  }

  function close(): void {
    if (isClosed) return
    isClosed = true
    silence.stop()
    forgetAgents?.()
    forget()
    leave.abort()
    changed()
    onClose()
  }

  const forgetAgents = context.onAgents?.(() => {
    isListNew = true
    changed()
  })
  const forget = context.onExpired(() => close())
  const source: BodySource = { next: fromPromises(next), cancel: close }
  for (const [i, { row }] of tasks.entries()) follow(watched[i]!, row).catch(report)
  untilClosing().catch(report)
  return source
}

const told: ReadonlySet<string> = new Set<Entry['type']>([...statusTypes, 'suspend', 'resume', 'run-end'])

function isTold({ type }: Entry): boolean {
  return told.has(type)
}

function toolsOf({ context, scope, client }: Asked): string {
  const { agents } = context.runtime
  return JSON.stringify(agentsIn(agents, scope).map((agent) => toTool(agent, agents, client.era)))
}

function promptsOf({ context, scope }: Asked): string {
  return JSON.stringify(listPrompts(agentsIn(context.runtime.agents, scope)))
}
