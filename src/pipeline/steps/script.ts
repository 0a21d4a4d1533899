/** `script`: JavaScript or TypeScript in a sandbox. And code tools: a model writes the script. */
import { z } from 'zod'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import type { CodeToolUse, ScriptConfig } from '../pipeline.ts'
import type { ScriptLimits } from '../script-limits.ts'
import { readShapes } from '../read-shape.ts'
import { checkReferences, textOf, type StepContext } from '../reader.ts'
import { wholeReference } from '../reference.ts'
import { duration, integer, later, list, map, name, preset, prompt, size } from '../scalars.ts'
import { budget, stepTimeouts } from '../schema.ts'
import { isMapOrReference, toTemplate } from '../template.ts'
import type { Node } from '../tree.ts'
import {
  checkScriptTools,
  parametersIn,
  readClientTools,
  toolItem,
  toToolGroup,
  type ClientTools,
} from './tool-list.ts'
import { inline } from './tool-settings.ts'

const mebibyte = 1024 * 1024
const mostCode = 256 * 1024
const defaultLimits: ScriptLimits = { time: 5000, memory: 32 * mebibyte, calls: 100, parallel: 10 }

const limits = lazily(() =>
  map({
    time: duration(1, 60_000)
      .optional()
      .describe('CPU time of the script, at most 60s; waiting for calls does not count. Default: 5s.'),
    memory: size(mebibyte, 256 * mebibyte)
      .optional()
      .describe('Memory of the script, such as 64mb, at most 256mb. Default: 32mb.'),
    calls: integer(1, 1000).optional().describe('How many calls it may make, at most 1000. Default: 100.'),
    parallel: integer(1, 50)
      .optional()
      .describe('How many of its calls run at the same time, at most 50. More wait in order. Default: 10.'),
  }),
)
const scriptToolWords = 'must be the name of a tool, or a map with "name", "mcp" or "agent"'

export const scriptConfig = lazily(() =>
  map({
    code: prompt
      .min(1, 'is empty; write the script here, or { file: scripts/name.ts }')
      .max(mostCode, 'is longer than 256 KB; move work into tools')
      .describe(
        'The script: text, { file: scripts/totals.ts }, or a single reference to a text. It gets `input`, `tools`, `ask` and `console`, and returns JSON.',
      ),
    input: z
      .unknown()
      .refine(isMapOrReference, 'must be a map, or a reference to one')
      .optional()
      .describe('The `input` of the script: a map, or a reference to one.'),
    tools: list(z.union([...toolItem()], scriptToolWords))
      .default([])
      .describe('Tools that the script may call, as tools.name(arguments).'),
    limits: limits().optional().describe('Limits of the script.'),
    output: map({ schema: later('shapes').describe('Schema of what it returns, by name, in the format of "input".') })
      .optional()
      .describe('What the script returns must match a schema.'),
    budget: budget.optional().describe('Limits of this step.'),
    timeouts: stepTimeouts.optional().describe('Time limits in this step.'),
  }),
)

export function readScript(node: Node, { reader, place }: StepContext) {
  const { faults, known } = reader
  const [code, tools, output] = [child(node, 'code'), child(node, 'tools'), child(node, 'output')]
  const isText = code !== undefined && wholeReference(textOf(code) ?? '') === undefined
  const own = [...(isText ? [code] : []), ...(output ? [output] : []), ...parametersIn(tools)]
  checkReferences(node, place, reader, new Set(own))
  checkScriptTools(tools, known, faults)
  const clients = readClientTools(tools, reader)
  const parsed = check(scriptConfig(), node, faults, 'the config of a script step')
  const schema = child(output, 'schema')
  const shape = schema && readShapes(schema, faults)
  if (isText) checkCode(code, reader)
  if (parsed === undefined) return undefined
  const { code: script, budget: limit, timeouts } = parsed
  const input = child(node, 'input')
  const config: ScriptConfig = omitUndefined({
    code: script,
    input: input && toTemplate(input),
    uses: toToolGroup(parsed.tools, tools, clients),
    limits: { ...defaultLimits, ...omitUndefined(parsed.limits ?? {}) },
    output: shape,
  })
  return { type: 'script' as const, config, ...(limit && { budget: limit }), ...(timeouts && { timeouts }) }
}

/** Finds mistakes of syntax where the text can be checked: see `Known.checkScript`. */
function checkCode(code: Node, { known, faults }: StepContext['reader']): void {
  const text = textOf(code)
  const wrong = text === undefined || text === '' ? undefined : known?.checkScript?.(text)
  if (wrong === undefined) return
  const { line, column, message } = wrong
  const file = code.kind === 'scalar' ? code.file : undefined
  const at = file === undefined ? `line ${line}, column ${column} of the script` : `${file}:${line}:${column}`
  faults.add(code.at, `${at}: ${message}`)
}

/** Of a code tool that has no other. */
export const codeToolName = 'runCode'

const toolName = name.regex(
  /^[A-Za-z0-9_-]{1,64}$/u,
  'must have 1 to 64 letters, digits, "_" or "-", as providers require of a tool',
)

/** An item `{ code: [...] }` of the `tools` of an `llm` or `router` step. */
export const codeTool = lazily(() =>
  map({
    code: list(z.union([...toolItem()], scriptToolWords))
      .min(1, 'is empty; list the tools that the script may call')
      .describe('The model gets one tool, which runs a script over these tools.'),
    name: preset(toolName, codeToolName, 'Name of the tool for the model.'),
    limits: limits().optional().describe('Limits of each script.'),
    inline,
  }),
)
type CodeTool = z.infer<ReturnType<typeof codeTool>>

export function isCodeTool<T>(use: T | CodeTool): use is CodeTool {
  return typeof use === 'object' && use !== null && 'code' in use
}

/** `item`: the node in the text. */
export function toCodeTool(
  { code, name: called, limits: own, inline: most }: CodeTool,
  item: Node,
  clients: ClientTools,
): CodeToolUse {
  const uses = toToolGroup(code, child(item, 'code'), clients)
  const limit = { ...defaultLimits, ...omitUndefined(own ?? {}) }
  return omitUndefined({ name: called, uses, limits: limit, inline: most })
}
