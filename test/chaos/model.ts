/** The model server of the chaos test: follows a script that the user names, slowly, and notes what it was asked. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'

export interface ChaosModel {
  baseURL: string
  /** Requests for each turn. */
  requests: Map<string, number>
  /** Conversations that a strict provider would refuse. */
  misfits: string[]
  close(): Promise<void>
}

interface Message {
  role: string
  content: unknown
  tool_calls?: { id: string }[]
  tool_call_id?: string
}

/** What a user says: the turn's name, and how it goes. */
export const says = (turn: string, tools: number) => `turn ${turn} with ${tools} tools`
export const answerTo = (turn: string) => Array.from({ length: last }, (_, i) => `${turn}.${i} `).join('')

const [before, last] = [15, 60]

export async function startModel(): Promise<ChaosModel> {
  const requests = new Map<string, number>()
  const misfits: string[] = []

  async function answer(reply: UpstreamReply): Promise<void> {
    const messages = reply.body.messages as Message[]
    const fault = misfit(messages)
    if (fault !== undefined) misfits.push(fault)
    const asked = messages.findLastIndex(({ role }) => role === 'user')
    const [, turn = '', tools] = /turn (\S+) with (\d+) tools/u.exec(JSON.stringify(messages[asked]!.content))!
    requests.set(turn, (requests.get(turn) ?? 0) + 1)
    const results = messages.slice(asked).filter(({ role }) => role === 'tool').length
    if (results < Number(tools)) {
      for (let i = 0; i < before; i++) await say(reply, `before${i} `)
      reply.call(`call_${results}`, 'mark', { n: 30 })
      return reply.finish('tool_calls')
    }
    for (let i = 0; i < last; i++) await say(reply, `${turn}.${i} `)
    reply.finish()
  }

  const { baseURL, close } = await startUpstream((reply) => answer(reply))
  return { baseURL, requests, misfits, close }
}

async function say(reply: UpstreamReply, word: string): Promise<void> {
  reply.say(word)
  await sleep(15)
}

/** A call without its result, or a result without its call. */
function misfit(messages: readonly Message[]): string | undefined {
  let due: string[] = []
  for (const { role, tool_calls = [], tool_call_id } of messages) {
    if (role === 'tool') {
      if (!due.includes(tool_call_id!)) return `${tool_call_id} was not asked`
      due = due.filter((id) => id !== tool_call_id)
    } else if (due.length > 0) return `${due.join()} without result`
    else due = tool_calls.map(({ id }) => id)
  }
  return due.length > 0 ? `${due.join()} without result` : undefined
}
