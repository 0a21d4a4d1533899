/** `cli-agent`: a coding agent of the command line as a child process. */
import { z } from 'zod'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import type { CliAgentConfig } from '../pipeline.ts'
import { checkCallbacks } from '../names.ts'
import { didYouMean } from '../nearest.ts'
import { checkReferences, itemsOf, textOf, type StepContext } from '../reader.ts'
import { references, splitReferences } from '../reference.ts'
import { duration, flag, list, map, name, nameOf, oneOf, preset, prompt, timeLimit } from '../scalars.ts'
import { budget } from '../schema.ts'
import type { Node } from '../tree.ts'
import { streamInLoop } from './llm.ts'

/** The permission modes of each CLI, by its own names; `undefined`: it has no list of allowed tools. */
const permissionModes = {
  claude: ['default', 'acceptEdits', 'plan', 'dontAsk', 'auto', 'bypassPermissions'],
  codex: ['read-only', 'workspace-write', 'danger-full-access'],
  gemini: ['default', 'auto_edit', 'plan', 'yolo'],
  qwen: ['default', 'auto-edit', 'plan', 'yolo'],
} as const

const callback = (when: string) => nameOf('callbacks').optional().describe(`Name of a callback, called ${when}.`)
const variable = name.regex(/^[A-Za-z_][A-Za-z0-9_]*\??$/u, 'must be the name of an environment variable')
const tool = name.regex(/^[^-]/u, 'must not begin with "-"')

export const cliAgentConfig = lazily(() =>
  map({
    cli: oneOf(['claude', 'codex', 'gemini', 'qwen']).describe(
      'Which agent: claude (Claude Code), codex, gemini, qwen (Qwen Code).',
    ),
    command: z
      .union([name, list(name).min(1, 'is empty; name a program')], 'must be a program, or a list: program, arguments')
      .optional()
      .describe(
        'The program to start, by its name on PATH or its absolute path; or a list of the program and its first arguments. Default: the value of "cli".',
      ),
    prompt: prompt
      .default('$input.messages')
      .describe(
        'What the agent is to do: text, { file: path }, or a reference to text or to messages. Of several messages the earlier ones come first, as a transcript.',
      ),
    cwd: name
      .default('.')
      .describe(
        'Folder in which it runs. Up to the first reference it is the folder that the rest must not leave, also through symlinks. A relative one begins where the server was started.',
      ),
    model: name.optional().describe('The model, by the name that the agent has for it.'),
    permissionMode: name
      .optional()
      .describe(
        `What it may do without asking. claude: ${permissionModes.claude.join(', ')}; codex (its sandbox): ${permissionModes.codex.join(', ')}; gemini: ${permissionModes.gemini.join(', ')}; qwen: ${permissionModes.qwen.join(', ')}. Default: that of the agent.`,
      ),
    allowedTools: list(tool).optional().describe('Tools that it may use without asking. Not for codex.'),
    env: list(variable)
      .default([])
      .describe(
        'Names of environment variables of the server that it gets, such as ANTHROPIC_API_KEY. One that ends in "?" may be unset. Without the list it gets only PATH, HOME, LANG and the like.',
      ),
    args: list(name).default([]).describe('Further arguments, as they are.'),
    rawLog: preset(flag, false, 'true: keep its stdout, byte for byte, as <data>/runs/<run>.<step>.raw.'),
    stream: flag.optional().describe('true: this step is the answer. Default: true if it is the last step.'),
    budget: budget.optional().describe('Limits of this step.'),
    timeouts: map({
      firstToken: timeLimit().optional().describe('Time from its start to its first output. Default: 10m.'),
      idle: timeLimit().optional().describe('Time between two outputs, stderr included. Default: 10m.'),
      step: duration(1).optional().describe('Time for the whole step.'),
    })
      .optional()
      .describe('Time limits in this step.'),
    onStreamPart: callback('with every part of its output'),
    onProgress: callback('with every piece of the text of its answer'),
    onToolCall: callback('once for each tool call, with its name and its input'),
  }),
)

const callbackKeys = ['onStreamPart', 'onProgress', 'onToolCall']
/** They start programs on this machine and set their permissions, so a request must not set them. */
const fixedKeys = ['cli', 'command', 'permissionMode', 'allowedTools', 'env', 'args']

export function readCliAgent(node: Node, { reader, place }: StepContext) {
  const { faults, known } = reader
  checkReferences(node, place, reader)
  const parsed = check(cliAgentConfig(), node, faults, 'the config of a cli-agent step')
  if (known) checkCallbacks(node, callbackKeys, known, faults)
  for (const key of fixedKeys) checkFixed(key, child(node, key))
  const cwd = child(node, 'cwd')
  if (cwd?.kind === 'scalar' && !beginsFixed(cwd.text)) {
    faults.add(cwd.at, '"cwd" must begin with a folder that no request chooses, such as ./work/$input.project')
  }
  const stream = child(node, 'stream')
  if (parsed?.stream && stream && place.loopNames.has('index')) faults.add(stream.at, streamInLoop)
  if (parsed === undefined) return undefined
  const { cli, command, budget: own, timeouts, permissionMode, allowedTools, ...rest } = parsed
  const mode = child(node, 'permissionMode')
  const modes: readonly string[] = permissionModes[cli]
  if (mode && permissionMode !== undefined && !modes.includes(permissionMode)) {
    faults.add(mode.at, `"permissionMode" must be one of ${modes.join(', ')}${didYouMean(permissionMode, modes)}`)
  }
  const tools = child(node, 'allowedTools')
  if (tools && cli === 'codex') {
    faults.add(tools.at, '"allowedTools" does not apply to codex; choose its sandbox with "permissionMode"')
  }
  const config: CliAgentConfig = omitUndefined({
    ...rest,
    cli,
    permissionMode,
    allowedTools,
    command: typeof command === 'string' ? [command] : command,
  }) as CliAgentConfig
  return { type: 'cli-agent' as const, config, ...(own && { budget: own }), ...(timeouts && { timeouts }) }

  function checkFixed(key: string, value: Node | undefined): void {
    for (const each of value?.kind === 'list' ? itemsOf(value) : [value]) {
      const [first] = references(textOf(each) ?? '')
      if (each && first) faults.add(each.at, `"${key}" must not contain references (${first.text}); write it out`)
    }
  }
}

/** Whether a path begins with a folder that is in the file, or that the operator sets as an environment variable. */
function beginsFixed(path: string): boolean {
  const [first] = splitReferences(path)
  return typeof first === 'string' || first?.path[0] === 'env'
}
