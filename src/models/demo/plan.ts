/**
 * Plans the demo model's answer from rules over the last user message. Deterministic: the same conversation always gives the
 * same plan.
 */
import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { parseJson } from '../../part/json.ts'
import { respondSpec } from '../../part/respond.ts'
import { argumentsFrom, expressionsIn, timeZoneIn, wordAt, type Schema } from './arguments.ts'
import { ownValue } from '../../part/own-value.ts'
import { playRole, adviceOn } from './role.ts'

export interface DemoPlan {
  reasoning?: string
  text: string
  calls: { toolName: string; input: unknown }[]
}

type Tool = LanguageModelV4FunctionTool

/** Limits: characters read of the last user message, and tool calls per answer. */
const longest = 10_000
const mostCalls = 32

export function planAnswer(options: LanguageModelV4CallOptions): DemoPlan {
  const { prompt, responseFormat, toolChoice } = options
  const asked = prompt.findLastIndex(({ role }) => role === 'user')
  const { words, files } = userSaid(prompt[asked])
  const offered = toolChoice?.type === 'none' ? [] : (options.tools ?? []).filter((tool) => tool.type === 'function')
  const tools = offered.filter((tool) => !isRespond(tool))
  const outcomes = outcomesIn(prompt.slice(asked + 1))
  const isOver = outcomes.length > 0 && !/\b(again and again|over and over|forever)\b/i.test(words)

  if (tools.length < offered.length) {
    // In a router step: call the tools first, then hand over to the answering step.
    const calls = isOver ? [] : callsFor(words, tools, toolChoice)
    if (calls.length > 0) return { text: '', calls }
    const reason = outcomes.length > 0 ? 'The tools have given what was asked for.' : 'No tool is asked for.'
    return { text: '', calls: [{ toolName: respondSpec.name, input: { reason } }] }
  }
  if (isOver) {
    if (responseFormat?.type === 'json') return { text: jsonFor(responseFormat.schema, words), calls: [] }
    return { text: outcomes.join(' '), calls: [] }
  }
  const calls = callsFor(words, tools, toolChoice)
  const plan: DemoPlan = { text: '', calls }
  if (isToThink(words, options.reasoning)) plan.reasoning = think(words, calls, tools)
  // The line break separates this text from the one after the tool calls in clients that show both as one.
  if (calls.length > 0) plan.text = `Let me use ${listOf(calls.map(({ toolName }) => toolName))}.\n`
  else if (responseFormat?.type === 'json') plan.text = jsonFor(responseFormat.schema, words)
  else plan.text = answer(words, files, tools, prompt)
  return plan
}

/** Checks the description too: a user's own tool may have the same name. */
function isRespond({ name, description }: Tool): boolean {
  return name === respondSpec.name && description === respondSpec.description
}

/** The list items of the system message, which is where `memory` steps put recalled facts. */
function remembered(words: string, system: string): string[] {
  if (!/\b(remember|recall|know about me)\b/i.test(words)) return []
  return [...system.matchAll(/^- (?:User: )?(.+)$/gmu)].map(([, item]) => item!)
}

function callsFor(words: string, tools: Tool[], choice: LanguageModelV4CallOptions['toolChoice']): DemoPlan['calls'] {
  const named = namedCalls(words, tools)
  if (choice?.type === 'tool') {
    const tool = tools.find(({ name }) => name === choice.toolName)
    const own = named.filter(({ toolName }) => toolName === choice.toolName)
    return own.length > 0 || tool === undefined ? own : [call(tool, words)]
  }
  const calls = named.slice(0, mostCalls)
  const isFree = (name: string) =>
    named.every(({ toolName }) => toolName !== name) && tools.find((t) => t.name === name)
  if (isFree('calculator') && asksToCalculate(words)) {
    const expressions = expressionsIn(words).slice(0, mostCalls)
    for (const expression of expressions) calls.push({ toolName: 'calculator', input: { expression } })
  }
  if (isFree('getCurrentTime') && timeWords.test(words)) {
    const timeZone = timeZoneIn(words)
    calls.push({ toolName: 'getCurrentTime', input: timeZone === undefined ? {} : { timeZone } })
  }
  const locating = tools.find(({ name }) => /location/i.test(name))
  if (locating !== undefined && isFree(locating.name) && whereWords.test(words)) calls.push(call(locating, words))
  if (calls.length === 0 && choice?.type === 'required' && tools[0]) return [call(tools[0], words)]
  return calls
}

/** "use the tool a for Paris and the tool b": the words up to the next tool name belong to the tool. */
function namedCalls(words: string, tools: Tool[]): DemoPlan['calls'] {
  const asksForTools = /\b(use|using|call|run|invoke|try)\b[^.?!]*\btools?\b/i.test(words)
  const found = tools
    .flatMap((tool) => wordAt(words, tool.name).map((at) => ({ tool, at, end: at + tool.name.length })))
    .filter(
      ({ at }) => asksForTools || /\b(use|using|call|run|invoke|try)\s+(the\s+)?[`"']?$/i.test(words.slice(0, at)),
    )
    .sort((a, b) => a.at - b.at)
  return found.map(({ tool, end }, i) => {
    const own = words.slice(end, found[i + 1]?.at).replace(/^[`"']/, '')
    // "for Paris, use the tool weather": if no words follow the name, use the whole message.
    return call(tool, /\w/.test(own.replace(/\b(and|then|the|tools?|please|also)\b/gi, '')) ? own : words)
  })
}

function call(tool: Tool, words: string): DemoPlan['calls'][number] {
  return { toolName: tool.name, input: argumentsFrom(tool.inputSchema as Schema, words) }
}

function asksToCalculate(words: string): boolean {
  return (
    /\b(calculat\w*|comput\w*|evaluat\w*|what(?:'s| is| are)|how much|solve|result of)\b|=/i.test(words) ||
    /\d\s*[*+^×]\s*[\d(]/.test(words) ||
    /^[\d\s.()+*/^%-]+\??$/.test(words)
  )
}

const whereWords = /\bwhere am i\b|\bwhere i am\b|\bmy (?:location|position|place)\b/i

const timeWords =
  /\bwhat time\b|\b(the|current|local) (time|date)\b|\btime is it\b|\btime in\b|\btoday's date\b|\bwhat day\b|\bgetCurrentTime\b/i

function isToThink(words: string, reasoning: LanguageModelV4CallOptions['reasoning']): boolean {
  if (reasoning === 'none') return false
  if (reasoning !== undefined && reasoning !== 'provider-default') return true
  return /\b(think|reason|ponder|reflect)\b|step by step/i.test(words)
}

function think(words: string, calls: DemoPlan['calls'], tools: Tool[]): string {
  const toolsSeen =
    tools.length === 0 ? 'I was given no tools.' : `I was given ${listOf(tools.map(({ name }) => name))}.`
  const decision =
    calls.length === 0
      ? 'Nothing here asks for one of them, so I answer in words.'
      : `The message asks for ${listOf(calls.map(({ toolName, input }) => `${toolName} with ${JSON.stringify(input)}`))}.`
  return `The message has ${words.split(/\s+/).filter(Boolean).length} words. ${toolsSeen} ${decision}`
}

function answer(words: string, files: string[], tools: Tool[], prompt: LanguageModelV4Prompt): string {
  const system = prompt.flatMap(({ role, content }) => (role === 'system' ? [content] : [])).join('\n')
  const known = remembered(words, system)
  if (known.length > 0) return `I remember this of what you said: ${known.map((item) => `"${item}"`).join(', ')}.`
  const long = longAnswer(words)
  if (long !== undefined) return long
  const played = files.length === 0 && !/\buse the tool\b/i.test(words) ? playRole(system, words) : undefined
  if (played !== undefined) return played
  const seen = files.length === 0 ? '' : ` With it came ${listOf(files)}.`
  const hint =
    tools.length === 0
      ? 'Set a key and name another model to get real answers.'
      : `I can use ${listOf(tools.map(({ name }) => name))}: say "use the tool ${tools[0]!.name}".`
  const missing = /\buse the tool\s+[`"']?([\w-]+)/i.exec(words)?.[1]
  const refusal = missing === undefined ? '' : ` There is no tool "${missing}" here.`
  return `I am the Millrace demo model: I run offline, without a key, and follow simple rules. You said: "${shorten(words)}"${seen}${refusal} ${hint}`
}

function shorten(words: string): string {
  return words.length > 200 ? `${words.slice(0, 200)}…` : words
}

/** A long answer for trying stop and resume: "count to 300", "write 500 words". */
function longAnswer(words: string): string | undefined {
  const target = Number(/\bcount (?:up )?to (\d{1,4})\b/i.exec(words)?.[1] ?? 0)
  if (target > 0)
    return `The Millrace demo model counts: ${Array.from({ length: target }, (_, i) => i + 1).join(', ')}.`
  const length = Number(/\b(\d{1,4}) words\b/i.exec(words)?.[1] ?? 0)
  if (length === 0) return undefined
  return Array.from({ length }, (_, i) => filler[i % filler.length]).join(' ')
}
const filler =
  'This is the Millrace demo model and these words only show how an answer flows: one after another, each on its way before the next is known.'.split(
    ' ',
  )

/** One sentence for the outcome of each tool call since the last user message. */
function outcomesIn(messages: LanguageModelV4Prompt): string[] {
  const inputs = new Map<string, unknown>()
  const sentences: string[] = []
  for (const { role, content } of messages) {
    if (role !== 'assistant' && role !== 'tool') continue
    for (const part of content) {
      if (part.type === 'tool-call') inputs.set(part.toolCallId, part.input)
      if (part.type === 'tool-result') sentences.push(outcome(part.toolName, inputs.get(part.toolCallId), part.output))
    }
  }
  return sentences
}

type Output = Extract<
  Extract<LanguageModelV4Prompt[number], { role: 'tool' }>['content'][number],
  { type: 'tool-result' }
>['output']

function outcome(toolName: string, input: unknown, output: Output): string {
  switch (output.type) {
    case 'execution-denied':
      return `I was not allowed to use ${toolName}${output.reason ? `: ${output.reason}` : ''}.`
    case 'error-text':
    case 'error-json':
      return `The tool ${toolName} failed: ${show(output.value)}.`
    case 'content':
      return `${toolName} gave ${output.value.map((part) => (part.type === 'text' ? part.text : part.type)).join(' ')}.`
    default: {
      const value = output.type === 'text' ? parsed(output.value) : output.value
      const expression = field(input, 'expression')
      const result = field(value, 'result')
      if (toolName === 'calculator' && result !== undefined) return `${show(expression ?? 'That')} = ${show(result)}.`
      const time = field(value, 'time')
      if (toolName === 'getCurrentTime' && time !== undefined) return `The time is ${show(time)}.`
      return `${toolName} gave ${show(value)}.`
    }
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? ownValue(value as Record<string, unknown>, name) : undefined
}

// Some clients send a tool's JSON result as text.
function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function userSaid(message: LanguageModelV4Prompt[number] | undefined): { words: string; files: string[] } {
  if (message?.role !== 'user') return { words: '', files: [] }
  const words = message.content
    .map((part) => (part.type === 'text' ? part.text : ''))
    .join('\n')
    .trim()
    .slice(0, longest)
  const files = message.content.flatMap((part) =>
    part.type === 'file' ? [part.filename ?? `a file (${part.mediaType})`] : [],
  )
  return { words, files }
}

function listOf(items: string[]): string {
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`
}

/* The demo model's answer when JSON output is requested. */

/** Names of fields for a critic's advice. */
const adviceFields = /^(?:advice|feedback|critique|criticism|improvements?|suggestions?)$/i

/** JSON that fits the schema, filled from the words. Advice fields get the critic's text unless the words set them. */
function jsonFor(schema: unknown, words: string): string {
  if (schema === undefined) return JSON.stringify({ answer: `The Millrace demo model was told: ${words}` })
  const value = argumentsFrom(schema as Schema, words)
  return JSON.stringify(value, (key, item: unknown) =>
    typeof item === 'string' && adviceFields.test(key) && !new RegExp(`\\b${key}\\s*[=:]`, 'iu').test(words)
      ? adviceOn(words)
      : item,
  )
}
