/** What an agent's text may set to work where it runs: programs, tools, servers, code and other agents, for somebody who decides whether it may. */
import { stepsInside } from './calls.ts'
import type { LlmConfig, ToolLoopConfig } from './llm-config.ts'
import type { Pipeline, Step } from './pipeline.ts'

/** One line for each step that does so, in the order of the file: `line 4, step fix: starts the program claude`. */
export function programsOf({ workflow, after }: Pick<Pipeline, 'workflow' | 'after'>): string[] {
  const found: { line: number; text: string }[] = []
  const left = [...workflow, ...after]
  for (let step = left.pop(); step !== undefined; step = left.pop()) {
    left.push(...stepsInside(step))
    const { line, id } = step
    for (const does of doings(step)) found.push({ line, text: `line ${line}, step ${id}: ${does}` })
  }
  return found.toSorted((a, b) => a.line - b.line).map(({ text }) => text)
}

function doings(step: Step): string[] {
  switch (step.type) {
    case 'cli-agent': {
      const { cli, command = [cli], args, env, cwd, permissionMode, allowedTools = [] } = step.config
      const own = [
        `in the folder ${cwd}`,
        ...(env.length === 0 ? [] : [`with ${env.join(', ')} of the environment`]),
        ...(permissionMode === undefined ? [] : [`with the permissions ${permissionMode}`]),
        ...(allowedTools.length === 0 ? [] : [`with the tools ${allowedTools.join(', ')}`]),
      ]
      return [
        `starts the program ${[...command, ...args].map(quoted).join(' ')} ${own.join(', ')}`,
        ...callbacks(step.config),
      ]
    }
    case 'mcp-tool':
      return [`calls ${step.config.tool} of the MCP server ${step.config.server}`]
    case 'llm':
    case 'router':
      return [...toolsOf(step.config), ...callbacks(step.config)]
    case 'call-agent':
      return [`calls the agent ${step.config.agent}`]
    case 'custom':
      return [`runs the step type ${step.stepType} of the program`]
    default:
      return []
  }
}

function toolsOf({ tools, toolSources = [] }: ToolLoopConfig): string[] {
  const names = tools.map(({ name }) => name)
  const servers = toolSources.map(
    ({ mcp, tools: some }) => `${some?.join(', ') ?? 'all tools'} of the MCP server ${mcp}`,
  )
  return [
    ...(names.length === 0 ? [] : [`gives its model the tools ${names.join(', ')}`]),
    ...servers.map((server) => `gives its model ${server}`),
  ]
}

type Called = Partial<Pick<LlmConfig, 'onChunk' | 'onStepFinish' | 'onFinish' | 'onError' | 'onAbort'>> & {
  onStreamPart?: string
  onProgress?: string
  onToolCall?: string
}

function callbacks(config: Called): string[] {
  const { onChunk, onStepFinish, onFinish, onError, onAbort, onStreamPart, onProgress, onToolCall } = config
  const names = [onChunk, onStepFinish, onFinish, onError, onAbort, onStreamPart, onProgress, onToolCall]
  const found = names.filter((name) => name !== undefined)
  return found.length === 0 ? [] : [`calls the callbacks ${[...new Set(found)].join(', ')}`]
}

function quoted(word: string): string {
  return /^[\w./:@=+-]+$/u.test(word) ? word : JSON.stringify(word)
}
