/** `POST /api/runs/:id/messages`, `DELETE /api/runs/:id/messages/:messageId`: messages into a running turn. */
import { MillraceError } from '../../part/error.ts'
import type { UserMessage } from '../../part/message.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { messageModes, type MessageMode } from '../../part/sent-message.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { TellOptions } from '../../runtime/tell-run.ts'
import { fromClientMessages } from '../../wire/ui/ui-message.ts'
import { ownValue } from '../../part/own-value.ts'
import type { RequestContext } from '../handler-context.ts'
import { optionalText, readJson } from '../http/body.ts'
import { bad } from '../http/query.ts'
import type { Routes } from '../http/routes.ts'
import { checkWaits } from '../http/wait-until.ts'
import { protocolOf } from './runs.ts'

export function mountMessages(routes: Routes): void {
  routes.post('/api/runs/:id/messages', 'runs.answer', (context, request) =>
    postMessage(context, request.raw, request.param('id')),
  )
  routes.delete('/api/runs/:id/messages/:messageId', 'runs.answer', (context, request) =>
    deleteMessage(context, request.param('id'), request.param('messageId')),
  )
}

const keys = ['content', 'id', 'mode', 'role'] as const

/** Body: `{content, id?, mode?}`. 202 when it is stored: `{id, mode, duplicate}`. */
async function postMessage(context: RequestContext, request: Request, run: string): Promise<Response> {
  checkWaits(context.waitUntil(request), 'A message to a run')
  const body = await readJson(request, context.maxBodyBytes)
  const told = await context.runtime.tell(run, { ...readMessage(body, keys), protocol: protocolOf(context, request) })
  return Response.json(told, { status: 202 })
}

/** A message for a run. Throws `bad-input` with the field. `known`: the keys that the body may have. */
export function readMessage(body: Record<string, unknown>, known: readonly string[]): TellOptions {
  for (const key of Object.keys(body)) {
    if (known.includes(key)) continue
    throw new MillraceError('bad-input', `unknown key "${key.slice(0, 60)}"${didYouMean(key.slice(0, 60), known)}`)
  }
  const role = ownValue(body, 'role')
  if (role !== undefined && role !== 'user') throw bad('role', '"user", or left out')
  const given = ownValue(body, 'content')
  if (given === undefined || given === null || given === '') throw bad('content', 'a text, or a list of parts')
  const id = optionalText(body, 'id')
  const mode = toMode(ownValue(body, 'mode'))
  return { content: toContent(given), ...omitUndefined({ id, mode }) }
}

function toContent(content: unknown): UserMessage['content'] {
  try {
    const [message] = fromClientMessages([{ role: 'user', content }])
    if (message?.role === 'user' && message.content.length > 0) return message.content
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    const message = error.message.replaceAll('messages[0].', '').replaceAll('messages[0]', 'content')
    throw new MillraceError(error.code, message, { status: 400 })
  }
  throw bad('content', 'a text, or a list of parts')
}

function toMode(value: unknown): MessageMode | undefined {
  if (value === undefined || value === null) return undefined
  const mode = messageModes.find((each) => each === value)
  if (mode !== undefined) return mode
  const hint = typeof value === 'string' ? didYouMean(value.slice(0, 60), messageModes) : ''
  throw bad('mode', `one of ${messageModes.join(', ')}${hint}`)
}

async function deleteMessage({ runtime }: RequestContext, run: string, id: string): Promise<Response> {
  await runtime.takeBack(run, id)
  return Response.json({ id, withdrawn: true })
}
