/** `llm`: one conversation with a model, its tool loop included. */
import { z } from 'zod'
import type { Message } from '../../part/message.ts'
import { check, child } from '../check.ts'
import { checkContext, contextConfig } from '../context-config.ts'
import type { FaultCollector } from '../fault.ts'
import { lazily } from '../lazily.ts'
import type { LlmConfig, ToolLoopConfig } from '../pipeline.ts'
import { codeTool, isCodeTool, toCodeTool } from './script.ts'
import {
  checkScriptTools,
  parametersIn,
  readClientTools,
  toolItem,
  toToolGroup,
  type ClientTools,
} from './tool-list.ts'
import { checkLlmNames, checkTools } from '../names.ts'
import { readShapes } from '../read-shape.ts'
import { readTool } from '../../fold/long-results.ts'
import { skillTool } from '../skill-list.ts'
import { checkReferences, itemsOf, textOf, type StepContext } from '../reader.ts'
import { wholeReference } from '../reference.ts'
import {
  characters,
  flag,
  integer,
  later,
  list,
  map,
  name,
  nameOf,
  number,
  oneOf,
  preset,
  prompt,
  text,
} from '../scalars.ts'
import { budget, stepTimeouts } from '../schema.ts'
import { toTemplate } from '../template.ts'
import type { Node } from '../tree.ts'

const textPart = map({
  type: z.literal('text').describe('A text part or a file part.'),
  text: prompt.describe('The text, or { file: path }.'),
})
const filePart = map({
  type: z.literal('file').describe('A text part or a file part.'),
  mediaType: name.describe('Media type, for example image/png.'),
  data: name.describe('Base64, a data: URL or an http(s) URL.'),
  filename: name.optional().describe('File name.'),
})
const contentWords =
  'must be a string, { file: path }, or a list of parts {type: text, text} or {type: file, mediaType, data}'
const userPart = z.discriminatedUnion('type', [textPart, filePart], {
  error: ({ note }) => (note ? 'must be one of text, file' : contentWords),
})
const messageWords = 'must be {role, content}, where role is system, user or assistant'
const role = 'Author of the message: system, user or assistant.'
const content = 'Content of the message: a string, { file: path } or a list of parts.'
const message = z.discriminatedUnion(
  'role',
  [
    map({ role: z.literal('system').describe(role), content: prompt.describe(content) }),
    map({
      role: z.literal('user').describe(role),
      content: z.union([prompt, list(userPart)], contentWords).describe(content),
    }),
    map({
      role: z.literal('assistant').describe(role),
      content: z.union([prompt, list(textPart)], contentWords).describe(content),
    }),
  ],
  // The union reports both an unknown discriminator (role) and a value that is not a map.
  { error: ({ note }) => (note ? 'must be one of system, user, assistant' : messageWords) },
) satisfies z.ZodType<Message>
const messagesWords = 'must be a reference such as $input.messages, or a list of {role, content}'

const toolWords = 'must be the name of a tool, or a map with "name", "mcp", "agent" or "code"'
const callback = (when: string) => nameOf('callbacks').optional().describe(`Name of a callback, called ${when}.`)

export const llmConfig = lazily(() =>
  map({
    model: z
      .union(
        [nameOf('models'), list(nameOf('models')).min(1, 'is empty; name a model')],
        'must be the name of a model, or a list of names',
      )
      .optional()
      .describe(
        'The model, as provider:model. In a list, the next one is used when the one before refuses. Default: the model in the config.',
      ),
    system: z
      .union([prompt, list(prompt)], 'must be a string, { file: path }, or a list of these')
      .optional()
      .describe(
        'The system message: a string, or { file: prompts/poet.md } for a file below the folder of this one. A list of these is joined with empty lines.',
      ),
    messages: z
      .union([text.refine((value) => wholeReference(value) !== undefined, messagesWords), list(message)], messagesWords)
      .default('$input.messages')
      .describe('The conversation: a reference or a list of messages.'),
    stream: preset(flag, false, 'true: this step is the answer. Clients read it while the model writes it.'),
    stage: name.optional().describe('Name of the model call in traces. Default: "response".'),
    tools: list(z.union([...toolItem(), codeTool()], toolWords))
      .default([])
      .describe('Tools that the model may call.'),
    skills: flag
      .optional()
      .describe(
        'Whether the model sees the skills of the file. Default: true in a router and in a step with "stream: true".',
      ),
    toolChoice: z
      .union(
        [oneOf(['auto', 'none', 'required']), map({ tool: name.describe('The tool that must be called.') })],
        'must be auto, none, required or {tool: name}',
      )
      .optional()
      .describe('Whether the model may, must or must not call a tool.'),
    maxSteps: preset(integer(1, 1000), 5, 'Maximum number of model calls for one answer.'),
    output: map({
      schema: later('shapes').describe('Schema of the answer, by name, in the format of "input".'),
      retries: preset(
        integer(0, 20),
        1,
        'How many times an invalid answer is returned to the model with its errors, within maxSteps. With 0 and no tools, the text streams as the model writes it.',
      ),
    })
      .optional()
      .describe('The answer must be JSON that matches a schema.'),
    temperature: number(0).optional().describe('Sampling temperature. The range depends on the provider.'),
    maxOutputTokens: integer(1).optional().describe('Maximum number of output tokens of one model call.'),
    topP: number(0, 1)
      .optional()
      .describe('Nucleus sampling: only the most likely tokens, up to this total probability.'),
    stopSequences: list(text).optional().describe('Strings that end the output.'),
    seed: integer(-Number.MAX_SAFE_INTEGER)
      .optional()
      .describe('Seed for repeatable answers, if the provider supports it.'),
    reasoning: oneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
      .optional()
      .describe('How much the model reasons before it answers.'),
    providerOptions: z
      .record(z.string(), z.record(z.string(), z.unknown(), 'must be a map'), 'must be a map: provider → its options')
      .optional()
      .describe('Provider-specific options: provider → its options.'),
    headers: z
      .record(z.string(), text, 'must be a map: header → text')
      .optional()
      .describe('HTTP headers for requests to the provider.'),
    cache: oneOf(['auto', 'none', '1h'])
      .optional()
      .describe(
        'Prompt caching. auto: the provider is told to cache the prompt where another call with the same beginning is likely. 1h: so, and Anthropic keeps it for an hour. none: it is told nothing. Default: models.cache of the config, or auto.',
      ),
    context: contextConfig(),
    inline: characters()
      .optional()
      .describe(
        'Characters of a result of a tool that the model gets whole, for tools that set none: 30k; none: all. Default: 30k.',
      ),
    retries: preset(integer(0, 20), 2, 'Maximum number of retries when a call fails before its first content.'),
    budget: budget.optional().describe('Limits of this step.'),
    timeouts: stepTimeouts.optional().describe('Time limits in this step.'),
    onChunk: callback('with every chunk of the stream'),
    onStepFinish: callback('after every model call and its tool calls'),
    onFinish: callback('once, when the step is done'),
    onError: callback('once, when the step fails'),
    onAbort: callback('once, when the run is stopped, with the text so far'),
  }),
)

export function readLlm(node: Node, context: StepContext) {
  const { faults } = context.reader
  const output = child(node, 'output')
  checkToolLoop(node, context, output ? [output] : [])
  const parsed = check(llmConfig(), node, faults, 'the config of an llm step')
  const stream = child(node, 'stream')
  if (parsed?.stream && context.place.loopNames.has('index') && stream) {
    faults.add(stream.at, streamInLoop)
  }
  if (output) refuseHandoffs(node, faults)
  const schema = child(output, 'schema')
  const shape = schema && readShapes(schema, faults)
  const clients = readClientTools(child(node, 'tools'), context.reader)
  if (parsed === undefined) return undefined
  const { output: _, stream: streams, skills, ...rest } = parsed
  const { config, ...own } = readToolLoop(node, rest, clients)
  const llm: LlmConfig = {
    ...config,
    ...readSkills(node, context, skills ?? streams),
    stream: streams,
    ...(shape && parsed.output && { output: { schema: shape, retries: parsed.output.retries } }),
  }
  return { type: 'llm' as const, config: llm, ...own }
}

/** The answer of another agent has another shape. */
function refuseHandoffs(node: Node, faults: FaultCollector): void {
  for (const item of itemsOf(child(node, 'tools'))) {
    const handoff = child(item, 'handoff')
    if (handoff && textOf(handoff) === 'true')
      faults.add(handoff.at, 'a step with "output" answers itself; remove "handoff" here, or "output"')
  }
}

/** Checks the names and references that `llm` and `router` share, except those inside the nodes of `except`. */
export function checkToolLoop(node: Node, { reader, place }: StepContext, except: readonly Node[] = []): void {
  const { faults, known } = reader
  checkReferences(node, place, reader, new Set([...except, ...parametersIn(child(node, 'tools'))]))
  if (known) checkLlmNames(node, known, faults)
  if (known?.hasDefaultModel === false && child(node, 'model') === undefined) faults.add(node.at, noModel)
  checkTools(node, known, faults)
  checkContext(node, reader)
  refuseReadTool(child(node, 'tools'), faults)
  for (const item of itemsOf(child(node, 'tools'))) checkScriptTools(child(item, 'code'), known, faults)
}

/** The name of the built-in tool that reads long results. */
function refuseReadTool(tools: Node | undefined, faults: FaultCollector): void {
  const named = itemsOf(tools).map((item) => ({ item, at: nameNodeOf(item) }))
  for (const { item, at } of named) {
    if (at === undefined || textOf(at) !== readTool) continue
    const other = named.find((each) => each.item !== item)
    const whose = `the tools of line ${faults.lineOf((other?.item ?? tools ?? at).at)}`
    faults.add(at.at, `"${readTool}" is the built-in tool that reads long results of ${whose}; rename yours`)
  }
}

/** The node that names the tool of an item for the model. */
function nameNodeOf(item: Node): Node | undefined {
  if (item.kind !== 'map') return item
  return child(item, 'as') ?? child(item, 'name') ?? child(item, 'agent')
}

/** The skills of the file, if the step uses them. Their tool must not have the name of another one. */
export function readSkills(node: Node, { reader }: StepContext, uses: boolean): Pick<ToolLoopConfig, 'skills'> {
  const { skills, skillsAt, faults } = reader
  if (!uses || skills.length === 0) return {}
  for (const item of itemsOf(child(node, 'tools'))) {
    const at = nameNodeOf(item)
    if (at !== undefined && textOf(at) === skillTool) {
      const line = faults.lineOf(skillsAt)
      faults.add(
        at.at,
        `"${skillTool}" is the tool that reads the skills of line ${line}; rename yours, or set skills: false here`,
      )
    }
  }
  return { skills }
}

type ToolLoopKeys = Omit<z.infer<ReturnType<typeof llmConfig>>, 'stream' | 'output' | 'skills'>

/** The keys that `llm` and `router` share, in the form the engine uses. */
export function readToolLoop(node: Node, keys: ToolLoopKeys, clients: ClientTools) {
  const { model, system, tools: uses, budget: own, timeouts, ...rest } = keys
  const [first, ...fallbacks] = typeof model === 'string' ? [model] : (model ?? [])
  const list = child(node, 'tools')
  const items = uses.filter((use) => !isCodeTool(use))
  const config: ToolLoopConfig = { ...rest, ...toToolGroup(items, list, clients) }
  const code = uses.flatMap((use, i) => (isCodeTool(use) ? [toCodeTool(use, itemsOf(list)[i]!, clients)] : []))
  if (code.length > 0) config.codeTools = code
  if (system !== undefined) config.system = typeof system === 'string' ? system : system.join('\n\n')
  if (first !== undefined) config.model = first
  if (fallbacks.length > 0) config.fallbacks = fallbacks
  const options = child(node, 'providerOptions')
  if (options) config.providerOptions = toTemplate(options) as NonNullable<ToolLoopConfig['providerOptions']>
  return { config, ...(own && { budget: own }), ...(timeouts && { timeouts }) }
}

const noModel = 'no model; add "model: provider:name" to this config, or set models.default in millrace.config.ts'

export const streamInLoop =
  'a step inside a loop cannot stream: its output would be the answer and end the run in the first round; ' +
  'stream from a step after the loop'
