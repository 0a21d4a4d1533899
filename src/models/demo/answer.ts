/** The text and the tool calls of the demo model, from its scripts and the last user message. The same conversation gives the same answer. */
import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { ownValue } from '../../part/own-value.ts'
import { respondSpec } from '../../part/respond.ts'
import { argumentsFrom, expressionsIn, wordPattern, type Schema } from './arguments.ts'
import { habits, lines, roles } from './scripts.ts'

type Tool = LanguageModelV4FunctionTool
type Part = Extract<LanguageModelV4Prompt[number], { role: 'assistant' | 'tool' }>['content'][number]
type Call = { toolName: string; input: unknown }
type Answer = { reasoning?: string; text: string; calls: Call[] }

export function answerTo({ prompt, responseFormat, toolChoice, ...options }: LanguageModelV4CallOptions): Answer {
  const at = prompt.findLastIndex(({ role }) => role === 'user')
  const texts = prompt[at]?.role === 'user' ? prompt[at].content.map((each) => ('text' in each ? each.text : '')) : []
  const words = texts.join('\n').trim().slice(0, 10_000)
  const offered = toolChoice?.type === 'none' ? [] : (options.tools ?? []).filter((tool) => tool.type === 'function')
  // Checks the description too: a user's own tool may have the same name.
  const isRespond = (tool: Tool) => tool.name === respondSpec.name && tool.description === respondSpec.description
  const isChosen = ({ name }: Tool) => toolChoice?.type !== 'tool' || toolChoice.toolName === name
  const tools = offered.filter((tool) => !isRespond(tool) && isChosen(tool))
  const outcomes = outcomesIn(prompt.slice(at + 1))
  const isOver = outcomes.length > 0 && !/\bagain and again\b/i.test(words)
  const calls = isOver ? [] : callsFor(words, tools, /^(required|tool)$/.test(toolChoice?.type ?? ''))
  if (offered.some(isRespond)) {
    // In a router step: call the tools first, then hand over to the answering step.
    const reason = lines.handOver[outcomes.length > 0 ? 1 : 0]
    return { text: '', calls: calls.length > 0 ? calls : [{ toolName: respondSpec.name, input: { reason } }] }
  }
  const effort = options.reasoning ?? 'provider-default'
  const thinks = effort === 'provider-default' ? /\bthink\b|step by step/i.test(words) : effort !== 'none'
  const plan = calls.map(({ toolName, input }) => ` I call ${toolName} with ${JSON.stringify(input)}.`).join('')
  const reasoning = `The message has ${words.split(/\s+/).length} words.${plan || ' I answer in words.'}`
  // The line break separates this text from the one after the tool calls in clients that show both as one.
  let text = `Let me use ${calls.map(({ toolName }) => toolName).join(', ')}.\n`
  if (calls.length === 0) text = isOver ? outcomes.join(' ') : textFor(words, tools, prompt)
  if (calls.length === 0 && responseFormat?.type === 'json') {
    text = JSON.stringify(responseFormat.schema ? argumentsFrom(responseFormat.schema, words) : { answer: text })
  }
  return { text, calls, ...(thinks && !isOver && { reasoning }) }
}

/** Tools that the words name ("use the tool a for Paris and the tool b"), then those that a question calls without a name. */
function callsFor(words: string, tools: Tool[], isForced: boolean): Call[] {
  const call = (tool: Tool, own: string) => ({ toolName: tool.name, input: argumentsFrom(tool.inputSchema, own) })
  const from = words.search(/\b(use|using|call|run|try)\b/i)
  const namesOf = (tool: Tool) => words.matchAll(new RegExp(wordPattern(tool.name), 'gi'))
  const named = tools
    .flatMap((tool) => [...namesOf(tool)].map(({ index }) => ({ tool, index })))
    .filter(({ index }) => from >= 0 && index > from)
    .sort((a, b) => a.index - b.index)
    .slice(0, 32)
    .map(({ tool, index }, i, all) => {
      // The words up to the next tool name belong to the tool; if there are none, the whole message does.
      const own = words.slice(index + tool.name.length, all[i + 1]?.index).replace(/[\s,]+and( the)?( tool)?\s*$/i, '')
      return call(tool, /\w/.test(own) ? own : words)
    })
  const implied = habits.flatMap(([pattern, question]) => {
    const tool = tools.find(({ name }) => pattern.test(name) && named.every(({ toolName }) => toolName !== name))
    if (tool === undefined || !question.test(words)) return []
    return (tool.name === 'calculator' ? expressionsIn(words) : [words]).map((own) => call(tool, own))
  })
  const calls = [...named, ...implied].slice(0, 32)
  const meant = calls.length === 0 && words.endsWith('?') ? tools.find(({ name }) => isAsked(name, words)) : undefined
  if (meant !== undefined) return [call(meant, words)]
  return calls.length === 0 && isForced ? tools.slice(0, 1).map((tool) => call(tool, words)) : calls
}

/** Whether a question has a word of the tool's name: "What's the weather like?" and `get_weather`. */
function isAsked(name: string, question: string): boolean {
  const asked = new Set(question.toLowerCase().match(/[a-z]+/gu))
  const parts =
    name
      .replaceAll(/([a-z])([A-Z])/gu, '$1 $2')
      .toLowerCase()
      .match(/[a-z]+/gu) ?? []
  return parts.some((part) => part.length >= 5 && asked.has(part))
}

function textFor(words: string, tools: Tool[], prompt: LanguageModelV4Prompt): string {
  const system = prompt.flatMap(({ role, content }) => (role === 'system' ? [content] : [])).join('\n')
  // `memory` steps put recalled facts into the system message as list items.
  const facts = [...system.matchAll(/^- (?:User: )?(.+)$/gmu)].map(([, fact]) => `"${fact}"`)
  const recalls = facts.length > 0 && /\b(remember|recall)\b/i.test(words)
  if (recalls) return `I remember this of what you said: ${facts.join(', ')}.`
  const [, count, last] = /\b(\d{1,4}) words\b|\bcount to (\d{1,4})\b/i.exec(words) ?? []
  if (last) return fill(lines.count, { numbers: Array.from({ length: +last }, (_, i) => i + 1).join(', ') })
  if (count) return `${lines.filler} `.repeat(+count).split(' ', +count).join(' ')
  // The first line of the system prompt, up to a colon, names the role. The rest is material: it is repeated, not obeyed.
  const [, order = '', rest = ''] = /^([^:\n]*):?([^]*)$/.exec(system.slice(0, 4000))!
  const [name, , text = ''] = roles.find(([, pattern]) => pattern.test(order)) ?? []
  const material = rest
    .replaceAll(/\[demo model, \w+\] |\s+(?=\s)/g, '')
    .replaceAll('\n', ' ')
    .trim()
    .slice(0, 800)
  const notes = [...rest.matchAll(/"(?:question|answer|advice)":"((?:[^"\\]|\\.)*)"/g)].map(([, note]) =>
    note!.replaceAll('\\"', '"'),
  )
  const values = { topic: (words || order).slice(0, 80), material, notes: notes.join(' ').slice(0, 800) }
  if (name !== undefined) return `[demo model, ${name}] ${fill(text, values)}`.trim()
  const hint =
    tools[0] && `I can use ${tools.map((tool) => tool.name).join(', ')}: say "use the tool ${tools[0].name}".`
  return `${fill(lines.greeting, { words: words.slice(0, 200) })} ${hint ?? 'Set a key and name another model to get real answers.'}`
}

/** One sentence for each tool result since the last user message. */
function outcomesIn(messages: LanguageModelV4Prompt): string[] {
  const calls = new Map<string, string>()
  const parts = messages.flatMap<Part>(({ role, content }) => (role === 'assistant' || role === 'tool' ? content : []))
  return parts.flatMap((part) => {
    if (part.type === 'tool-call') calls.set(part.toolCallId, (part.input as Schema | null)?.['expression'] ?? 'That')
    if (part.type !== 'tool-result') return []
    const { toolName: tool, output } = part
    if (output.type === 'execution-denied') return `I was not allowed to use ${tool}: ${output.reason ?? 'denied'}.`
    // Some clients send a tool's JSON result as text.
    const value = typeof output.value === 'string' ? output.value : JSON.stringify(output.value)
    if (output.type.startsWith('error')) return `The tool ${tool} failed: ${value}.`
    const [, key, result] = /^\{"(result|time)":"?([^,"}]+)/.exec(value) ?? []
    if (key === undefined) return `${tool} gave ${value}.`
    return key === 'time' ? `The time is ${result}.` : `${calls.get(part.toolCallId) ?? 'That'} = ${result}.`
  })
}

function fill(line: string, values: Record<string, string>): string {
  return line.replaceAll(/\{(\w+)\}/g, (_, name: string) => ownValue(values, name) ?? '')
}
