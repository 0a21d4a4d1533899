/** `chat --thread`: loads the thread. If its last run waits for an answer, asks for it first, or prints a warning. */
import type { CommandContext } from '../context.ts'
import type { Message } from '../../part/message.ts'
import { textWire } from '../../wire/text/text.ts'
import { answerLines } from '../answer-line.ts'
import { createAsk } from '../ask.ts'
import type { Backend } from '../backend.ts'
import { printable } from '../printable.ts'
import { reportRun } from '../run-report.ts'
import type { Ending } from '../stop-signals.ts'
import { waitingRun, warnOfEnd } from '../thread.ts'
import { follows } from '../turn.ts'

export interface Resumed {
  messages: Message[]
  ending?: Ending | undefined
  /** The run was answered and is suspended again, for something that cannot be answered here. */
  isWaiting: boolean
  hasFailed: boolean
}

export async function resumeThread(
  context: CommandContext,
  backend: Backend,
  threadId: string,
  yes: boolean | undefined,
): Promise<Resumed> {
  const isThere = context.stdin.isTTY === true
  const thread = await backend.thread(threadId)
  if (isThere) write(context, thread === undefined ? `${threadId} is a new conversation.` : `Continuing ${threadId}.`)
  const messages = thread?.messages ?? []
  const run = await waitingRun(backend, thread)
  if (run === undefined) return { messages, isWaiting: false, hasFailed: false }

  const { id, lastSeq, requests } = run
  const ask = createAsk(context, { yes, leaves: true })
  // Another command may be asking the same questions, and would not notice an answer given here.
  const isElsewhere = backend.isShared === true && run.protocol === 'cli'
  if (isElsewhere || !requests.every(ask.canAnswer)) {
    const lines = isThere ? ['To answer it first:', ...answerLines(id, requests, backend.where)] : []
    warnOfEnd(context, run, ...lines)
    return { messages, isWaiting: false, hasFailed: false }
  }
  if (isThere) write(context, `${id} waits for your answer (Ctrl-C ends the run):`)
  const options = { wire: textWire, ask, after: lastSeq, asksOpen: true, showsTools: true }
  const turned = await follows(context, backend, options, async () => id)
  const code = reportRun(context, { ...turned, where: backend.where, isQuiet: true })
  return {
    messages: (await backend.thread(threadId))?.messages ?? [],
    ending: turned.ending,
    isWaiting: turned.followed.waiting.length > 0,
    hasFailed: code !== 0,
  }
}

function write(context: CommandContext, line: string): void {
  context.stderr.write(`${printable(line)}\n`)
}
