/** What the demo model says and calls: fixed rules over the last user message. The same conversation gives the same answer. */
import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { parseJson } from '../../part/json.ts'
import { respondSpec } from '../../part/respond.ts'
import { argumentsFrom, expressionsIn, wordPattern, type Schema } from './arguments.ts'

type Tool = LanguageModelV4FunctionTool
type ToolMessage = Extract<LanguageModelV4Prompt[number], { role: 'tool' }>
type Result = Extract<ToolMessage['content'][number], { type: 'tool-result' }>

type Call = { toolName: string; input: unknown }
type Answer = { reasoning?: string; text: string; calls: Call[] }

/** Limits: characters read of the last user message, and tool calls per answer. */
const longest = 10_000
const mostCalls = 32

/** The parts that steps play: what in the first line of a system prompt gives the part, and what is said then. First match wins. */
const roles: readonly [name: string, cue: RegExp, says: string][] = [
  ['judge', /\b(weigh|decide|verdict)/i, 'On "{topic}" I have heard: {material} I recommend the smallest step.'],
  ['optimist', /\b(go well|optimist|advantage)/i, '"{topic}" can go well: what is new helps from the first day.'],
  ['sceptic', /\b(go wrong|s[ck]eptic|risk|against)/i, '"{topic}" can go wrong: it takes longer than planned.'],
  ['accountant', /\b(cost|accountant|budget)/i, '"{topic}" costs time before it saves any.'],
  ['researcher', /\b(this question|research|find out)/i, 'On "{topic}" a real model would answer: {material}'],
  ['writer', /\b(write|draft|improve|notes|tell|say)\b/i, 'This is about "{topic}". {material}'],
]

/** Questions that call a tool without naming it. */
const habits: readonly [tool: RegExp, asked: RegExp][] = [
  [/^calculator$/, /\b(calculate|compute|what(?:'s| is| are)|how much)\b|\d\s*[*+^×]\s*[\d(]|^[\d\s.()+*/^%-]+$/i],
  [/^getCurrentTime$/, /\bwhat (time|day)\b|\b(the|current|local) (time|date)\b|\btime in\b/i],
  [/location/i, /\bwhere am i\b|\bmy (location|position|place)\b/i],
]

export function answerTo(options: LanguageModelV4CallOptions): Answer {
  const { prompt, responseFormat, toolChoice, reasoning } = options
  const asked = prompt.findLastIndex(({ role }) => role === 'user')
  const { words, files } = said(prompt[asked])
  const offered = toolChoice?.type === 'none' ? [] : (options.tools ?? []).filter((tool) => tool.type === 'function')
  // Checks the description too: a user's own tool may have the same name.
  const isRespond = (tool: Tool) => tool.name === respondSpec.name && tool.description === respondSpec.description
  const isChosen = ({ name }: Tool) => toolChoice?.type !== 'tool' || toolChoice.toolName === name
  const tools = offered.filter((tool) => !isRespond(tool) && isChosen(tool))
  const outcomes = outcomesIn(prompt.slice(asked + 1))
  const isOver = outcomes.length > 0 && !/\b(again and again|over and over|forever)\b/i.test(words)
  const calls = isOver ? [] : callsFor(words, tools, toolChoice)
  if (offered.some(isRespond)) {
    // In a router step: call the tools first, then hand over to the answering step.
    const reason = outcomes.length > 0 ? 'The tools have given what was asked for.' : 'No tool is asked for.'
    return { text: '', calls: calls.length > 0 ? calls : [{ toolName: respondSpec.name, input: { reason } }] }
  }
  const answer: Answer = { text: '', calls }
  const isToThink = reasoning === undefined || reasoning === 'provider-default' ? null : reasoning !== 'none'
  if (!isOver && (isToThink ?? /\b(think|reason|ponder|reflect)\b|step by step/i.test(words))) {
    const does = calls.map(({ toolName, input }) => ` I call ${toolName} with ${JSON.stringify(input)}.`).join('')
    answer.reasoning = `The message has ${words.split(/\s+/).length} words.${does || ' I answer in words.'}`
  }
  // The line break separates this text from the one after the tool calls in clients that show both as one.
  if (calls.length > 0) answer.text = `Let me use ${listOf(calls.map(({ toolName }) => toolName))}.\n`
  else if (responseFormat?.type === 'json') {
    const told = { answer: `The Millrace demo model was told: ${words}` }
    const { schema } = responseFormat
    answer.text = JSON.stringify(schema === undefined ? told : argumentsFrom(schema as Schema, words))
  } else answer.text = isOver ? outcomes.join(' ') : inWords(words, files, tools, prompt)
  return answer
}

function callsFor(words: string, tools: Tool[], choice: LanguageModelV4CallOptions['toolChoice']): Call[] {
  const named = namedCalls(words, tools)
  const free = tools.filter(({ name }) => named.every(({ toolName }) => toolName !== name))
  const implied = habits.flatMap(([pattern, asks]) => {
    const tool = free.find(({ name }) => pattern.test(name))
    if (tool === undefined || !asks.test(words)) return []
    if (tool.name !== 'calculator') return [call(tool, words)]
    return expressionsIn(words).map((expression) => ({ toolName: tool.name, input: { expression } }))
  })
  const calls = [...named, ...implied].slice(0, mostCalls)
  const isForced = choice?.type === 'required' || choice?.type === 'tool'
  return calls.length === 0 && isForced ? tools.slice(0, 1).map((tool) => call(tool, words)) : calls
}

/** "use the tool a for Paris and the tool b": the words up to the next tool name belong to the tool. */
function namedCalls(words: string, tools: Tool[]): Call[] {
  const from = words.search(/\b(use|using|call|run|invoke|try)\b/i)
  if (from < 0) return []
  const found = tools
    .flatMap((tool) =>
      [...words.matchAll(new RegExp(wordPattern(tool.name), 'gi'))].map(({ index }) => ({ tool, index })),
    )
    .filter(({ index }) => index > from)
    .sort((a, b) => a.index - b.index)
  return found.slice(0, mostCalls).map(({ tool, index }, i) => {
    const own = words.slice(index + tool.name.length, found[i + 1]?.index).replace(/[\s,]+and( the)?( tool)?\s*$/i, '')
    // "for Paris, use the tool weather": if no words follow the name, use the whole message.
    return call(tool, /\w/.test(own) ? own : words)
  })
}

function call(tool: Tool, words: string): Call {
  return { toolName: tool.name, input: argumentsFrom(tool.inputSchema as Schema, words) }
}

function inWords(words: string, files: string[], tools: Tool[], prompt: LanguageModelV4Prompt): string {
  const system = prompt.flatMap(({ role, content }) => (role === 'system' ? [content] : [])).join('\n')
  // The list items of the system message are where `memory` steps put recalled facts.
  const known = [...system.matchAll(/^- (?:User: )?(.+)$/gmu)].map(([, item]) => `"${item}"`)
  if (known.length > 0 && /\b(remember|recall|know about me)\b/i.test(words))
    return `I remember this of what you said: ${known.join(', ')}.`
  const target = Number(/\bcount (?:up )?to (\d{1,4})\b/i.exec(words)?.[1] ?? 0)
  const numbers = Array.from({ length: target }, (_, i) => i + 1)
  if (target > 0) return `The Millrace demo model counts: ${numbers.join(', ')}.`
  const length = Number(/\b(\d{1,4}) words\b/i.exec(words)?.[1] ?? 0)
  const filler = ['These', 'words', 'of', 'the', 'Millrace', 'demo', 'model', 'show', 'how', 'text', 'flows.']
  if (length > 0) return Array.from({ length }, (_, i) => filler[i % filler.length]).join(' ')
  const missing = /\buse the tool\s+[`"']?([\w-]+)/i.exec(words)?.[1]
  const played = files.length === 0 && missing === undefined ? playRole(system, words) : undefined
  if (played !== undefined) return played
  const hint = tools[0] && `I can use ${listOf(tools.map(({ name }) => name))}: say "use the tool ${tools[0].name}".`
  return [
    `I am the Millrace demo model: I run offline, without a key, and follow simple rules. You said: "${words.length > 200 ? `${words.slice(0, 200)}…` : words}"`,
    ...(files.length > 0 ? [`With it came ${listOf(files)}.`] : []),
    ...(missing === undefined ? [] : [`There is no tool "${missing}" here.`]),
    hint ?? 'Set a key and name another model to get real answers.',
  ].join(' ')
}

/** The first line of the system prompt, up to a colon, gives orders; what stands behind it is material and gives none. */
function playRole(system: string, words: string): string | undefined {
  const [, order, behind] = /^([^:\n]*):?([^]*)$/.exec(system.slice(0, 20_000))!
  const [name, , says] = roles.find(([, cue]) => cue.test(order!)) ?? []
  if (name === undefined) return undefined
  const topic = shorten(words || order!, 80)
  const filled = says!.replace('{topic}', () => topic).replace('{material}', () => shorten(plain(behind!), 400))
  return `[demo model, ${name}] ${filled}`.trim()
}

/** Of JSON its questions, answers and advice. Without the marks of earlier answers, and labels with nothing behind them. */
function plain(material: string): string {
  const texts: string[] = []
  try {
    parseJson(material, (key, value) => {
      if (typeof value === 'string' && /^(question|answer|advice|\d+)$/.test(key)) texts.push(value)
      return value
    })
  } catch {
    // A `?` is left of a reference to what may be missing.
    const lines = material.split('\n').map((line) => line.trim().replace(/(?<=[.:!?]\s*)\?$/, ''))
    texts.push(...lines.filter((line) => !/:\s*$/.test(line)))
  }
  return texts.join(' ').replaceAll(/\[demo model, \w+\] /g, '')
}

/** One sentence for the outcome of each tool call since the last user message. */
function outcomesIn(messages: LanguageModelV4Prompt): string[] {
  const expressions = new Map<string, unknown>()
  const sentences: string[] = []
  for (const { role, content } of messages) {
    for (const part of role === 'assistant' || role === 'tool' ? content : []) {
      if (part.type === 'tool-call') expressions.set(part.toolCallId, (part.input as Schema | null)?.['expression'])
      if (part.type === 'tool-result') sentences.push(outcome(part, expressions.get(part.toolCallId)))
    }
  }
  return sentences
}

function outcome({ toolName, output }: Result, expression: unknown): string {
  if (output.type === 'execution-denied') {
    return `I was not allowed to use ${toolName}${output.reason ? `: ${output.reason}` : ''}.`
  }
  const shown = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
  if (output.type.startsWith('error')) return `The tool ${toolName} failed: ${shown(output.value)}.`
  const { result, time } = (jsonOf(output.value) ?? {}) as { result?: unknown; time?: unknown }
  if (toolName === 'calculator' && result !== undefined) return `${shown(expression ?? 'That')} = ${shown(result)}.`
  if (toolName === 'getCurrentTime' && time !== undefined) return `The time is ${shown(time)}.`
  return `${toolName} gave ${shown(jsonOf(output.value))}.`
}

// Some clients send a tool's JSON result as text.
function jsonOf(value: unknown): unknown {
  try {
    return typeof value === 'string' ? parseJson(value) : value
  } catch {
    return value
  }
}

function said(message: LanguageModelV4Prompt[number] | undefined): { words: string; files: string[] } {
  if (message?.role !== 'user') return { words: '', files: [] }
  const texts = message.content.map((part) => (part.type === 'text' ? part.text : ''))
  const files = message.content.filter((part) => part.type === 'file')
  return {
    words: texts.join('\n').trim().slice(0, longest),
    files: files.map(({ filename, mediaType }) => filename ?? `a file (${mediaType})`),
  }
}

function shorten(text: string, most: number): string {
  const line = text.trim().replaceAll(/\s+/g, ' ')
  return line.length > most ? `${line.slice(0, most)}…` : line
}

function listOf(items: string[]): string {
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`
}
