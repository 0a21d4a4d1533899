/** `millrace chat`: a conversation on the terminal, or one message per line from a pipe. */
import { dirname } from 'node:path'
import { leave, type CommandContext } from '../context.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { nameAgent } from '../paths.ts'
import { checkAgent } from '../connection/agents.ts'
import { createConversation, type Conversation } from './conversation.ts'
import {
  createLineReader,
  agentTable,
  chatHelp,
  completeChatCommand,
  parseChatCommand,
  type ChatCommand,
} from './input.ts'
import { printable, paint } from '../terminal/output.ts'
import type { Ending } from '../process-events.ts'
import type { ChatFlags } from '../commands/chat.ts'

/** Whether the chat continues, or its exit code. */
type Next = 'on' | { exit: number }

export async function startChat(context: CommandContext, text: string | undefined, flags: ChatFlags): Promise<void> {
  const named = text === undefined ? undefined : nameAgent(context, text, flags.dir)
  const isFile = named?.file !== undefined
  const agentFlags = isFile ? { ...flags, dir: dirname(named!.file!) } : flags
  if (named !== undefined) await checkAgent(context, named, agentFlags)
  const conversation = await createConversation(context, { agent: named?.id, isFile, ...agentFlags })
  const isTerminal = context.stdin.isTTY === true
  const reader = createLineReader(context, {
    prompt: () => paint(context, 'bold', `${printable(conversation.agent)}> `, context.stderr),
    complete: (line) =>
      completeChatCommand(
        line,
        conversation.agents.map(({ id }) => id),
      ),
  })
  if (isTerminal)
    print(context, `Chatting with ${conversation.agent}${conversation.at}. Type /help for commands, Ctrl-D to exit.`)
  let code = 0
  // From a pipe, this happens with the first message.
  const { ending } = isTerminal ? await conversation.resume() : {}
  let next: Next = continues(ending, isTerminal) ? 'on' : { exit: ending!.code }
  if (next !== 'on') code = next.exit
  while (next === 'on') {
    const line = await reader.read()
    if (line.type === 'leave') code = 130
    if (line.type !== 'line') break
    try {
      next = await act(context, conversation, parseChatCommand(line.text), isTerminal)
    } catch (error) {
      // A program notices a failure by the exit code.
      if (!isTerminal || !(error instanceof MillraceError)) {
        reader.close()
        await conversation.close()
        throw error
      }
      print(context, messageOf(error))
    }
    if (next !== 'on') code = next.exit
    else if (!isTerminal && conversation.hasFailed) code = 1
  }
  reader.close()
  await conversation.close()
  const { thread, flags: more } = conversation
  if (isTerminal && thread !== undefined && code !== 1) {
    const command = `millrace chat ${conversation.agent} --thread ${thread}${more}`
    context.stderr.write(`${paint(context, 'dim', printable(`Continue with: ${command}`), context.stderr)}\n`)
  }
  await leave(context, code)
}

async function act(
  context: CommandContext,
  conversation: Conversation,
  command: ChatCommand,
  isTerminal: boolean,
): Promise<Next> {
  switch (command.type) {
    case 'message': {
      if (command.text === '' && conversation.files.length === 0) return 'on'
      const { ending, isWaiting } = await conversation.say(command.text)
      if (!continues(ending, isTerminal)) return { exit: ending!.code }
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
      conversation.begin(command.value)
      print(context, `Chatting with ${conversation.agent} in a new conversation.`)
      return 'on'
    case 'file':
      conversation.attach(command.value)
      print(context, `${command.value} will be sent with your next message.`)
      return 'on'
    case 'help':
      context.stderr.write(`${chatHelp()}\n`)
      return 'on'
    case 'exit':
      return { exit: conversation.hasFailed && !isTerminal ? 1 : 0 }
  }
}

/** Ctrl-C on a terminal stops an answer, not the chat. */
function continues(ending: Ending | undefined, isTerminal: boolean): boolean {
  return ending === undefined || (isTerminal && ending.code === 130)
}

function print(context: CommandContext, text: string): void {
  context.stderr.write(`${printable(text)}\n`)
}
