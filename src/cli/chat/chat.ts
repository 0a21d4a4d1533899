/** `millrace chat`: a conversation on the terminal, or one message per line from a pipe. */
import { dirname } from 'node:path'
import { leave, type CommandContext } from '../context.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { nameAgent } from '../paths.ts'
import { checkAgent } from '../connection/agents.ts'
import { createConversation, type Conversation } from './conversation.ts'
import { createLineReader, agentTable, chatHelp, completeSaid, parseSaid, type Said } from './input.ts'
import { printable, paint } from '../terminal/output.ts'
import type { Ending } from '../process-events.ts'
import type { ChatFlags } from '../commands/chat.ts'

/** Whether the chat continues, or its exit code. */
type Next = 'on' | { exit: number }

export async function startChat(context: CommandContext, text: string | undefined, flags: ChatFlags): Promise<void> {
  const named = text === undefined ? undefined : nameAgent(context, text, flags.dir)
  const isFile = named?.file !== undefined
  const place = isFile ? { ...flags, dir: dirname(named!.file!) } : flags
  if (named !== undefined) await checkAgent(context, named, place)
  const conversation = await createConversation(context, { agent: named?.id, isFile, ...place })
  const isThere = context.stdin.isTTY === true
  const reader = createLineReader(context, {
    prompt: () => paint(context, 'bold', `${printable(conversation.agent)}> `, context.stderr),
    complete: (line) =>
      completeSaid(
        line,
        conversation.agents.map(({ id }) => id),
      ),
  })
  if (isThere)
    print(context, `Chatting with ${conversation.agent}${conversation.at}. Type /help for commands, Ctrl-D to exit.`)
  let code = 0
  // From a pipe, this happens with the first message.
  const { ending } = isThere ? await conversation.resume() : {}
  let next: Next = goesOn(ending, isThere) ? 'on' : { exit: ending!.code }
  if (next !== 'on') code = next.exit
  while (next === 'on') {
    const line = await reader.read()
    if (line.type === 'leave') code = 130
    if (line.type !== 'line') break
    try {
      next = await act(context, conversation, parseSaid(line.text), isThere)
    } catch (error) {
      // A program notices a failure by the exit code.
      if (!isThere || !(error instanceof MillraceError)) {
        reader.close()
        await conversation.close()
        throw error
      }
      print(context, messageOf(error))
    }
    if (next !== 'on') code = next.exit
    else if (!isThere && conversation.hasFailed) code = 1
  }
  reader.close()
  await conversation.close()
  const { thread, flags: more } = conversation
  if (isThere && thread !== undefined && code !== 1) {
    const command = `millrace chat ${conversation.agent} --thread ${thread}${more}`
    context.stderr.write(`${paint(context, 'dim', printable(`Continue with: ${command}`), context.stderr)}\n`)
  }
  await leave(context, code)
}

async function act(context: CommandContext, conversation: Conversation, said: Said, isThere: boolean): Promise<Next> {
  switch (said.type) {
    case 'message': {
      if (said.text === '' && conversation.files.length === 0) return 'on'
      const { ending, isWaiting } = await conversation.say(said.text)
      if (!goesOn(ending, isThere)) return { exit: ending!.code }
      return isWaiting ? { exit: 1 } : 'on'
    }
    case 'new':
      conversation.begin(conversation.agent)
      print(context, 'Started a new conversation.')
      return 'on'
    case 'agents':
      await conversation.refresh()
      context.stderr.write(`${agentTable(conversation.agents, conversation.agent)}\n`)
      return 'on'
    case 'agent':
      await conversation.refresh()
      conversation.begin(said.value)
      print(context, `Chatting with ${conversation.agent} in a new conversation.`)
      return 'on'
    case 'file':
      conversation.attach(said.value)
      print(context, `${said.value} will be sent with your next message.`)
      return 'on'
    case 'help':
      context.stderr.write(`${chatHelp()}\n`)
      return 'on'
    case 'exit':
      return { exit: conversation.hasFailed && !isThere ? 1 : 0 }
  }
}

/** Ctrl-C on a terminal stops an answer, not the chat. */
function goesOn(ending: Ending | undefined, isThere: boolean): boolean {
  return ending === undefined || (isThere && ending.code === 130)
}

function print(context: CommandContext, text: string): void {
  context.stderr.write(`${printable(text)}\n`)
}
