/**
 * Code tools: the model gets one tool that runs a script over other tools, so that many calls need one call of the model. The script is a step below the
 * call's step, and each of its calls is recorded like any other.
 */
import { messageOf } from '../part/error.ts'
import { joinPath } from '../part/path.ts'
import type { CodeToolUse } from '../pipeline/pipeline.ts'
import { declareScope } from '../script/declarations.ts'
import { revisitAgents } from './agent-tools.ts'
import { declared, runScript, ScriptFailure, scriptStart, type ScriptResult } from './run-script.ts'
import { inStep, Suspended, toError, type Scope } from './scope.ts'
import type { OfferedTool, ToolRun } from './tool-call.ts'

/** The id of the script's step below the step of the call. */
const inner = 'script'

const about = `Runs JavaScript or TypeScript that calls other tools. \`code\` is the body of an async function: call tools with await tools.name({...}), run independent calls at the same time with Promise.all, and return a JSON value. One call of this tool can replace many single calls. There are no modules, no network, no files and no timers. Dates are in UTC; text is compared by code points.`

/** `tools`: what the script may call. */
export function codeTool(use: CodeToolUse, tools: ReadonlyMap<string, OfferedTool>): OfferedTool {
  const inputSchema = {
    type: 'object',
    properties: { code: { type: 'string', description: 'The script.' } },
    required: ['code'],
    additionalProperties: false,
  }
  const description = `${about}\n\n${declareScope(declared(tools), { input: false })}`
  return {
    spec: { name: use.name, description, inputSchema },
    implementation: { parameters: inputSchema },
    runs: (scope, path, call) => runCode(scope, path, { use, tools, ...call }),
  }
}

type CodeRun = Parameters<ToolRun>[2] & { use: CodeToolUse; tools: ReadonlyMap<string, OfferedTool> }

async function runCode(
  scope: Scope,
  callPath: string,
  { use, tools, given, toolCallId, messages }: CodeRun,
): Promise<{ result: unknown; isError: boolean }> {
  const path = joinPath(callPath, inner)
  const finished = scope.state.finished.get(path)
  if (finished?.error !== undefined) return { result: finished.error.message, isError: true }
  if (finished !== undefined) return { result: finished.result, isError: false }
  const { code } = given as { code: string }
  try {
    const result = await inStep(scope, path, scriptStart, async () => {
      await revisitAgents(scope, path, use.uses.agentTools ?? [])
      const work = { code, input: {}, tools, limits: use.limits, id: toolCallId, messages }
      const value: ScriptResult = await runScript(scope, path, work)
      return { value, result: value }
    })
    return { result, isError: false }
  } catch (thrown) {
    if (thrown instanceof Suspended || scope.signal.aborted) throw thrown
    return { result: failureText(toError(thrown), thrown), isError: true }
  }
}

function failureText(error: Error, thrown: unknown): string {
  const calls = thrown instanceof ScriptFailure ? thrown.calls : []
  if (calls.length === 0) return messageOf(error)
  return `${messageOf(error)}\n\nThe script had made these calls. Do not repeat those that are done:\n${calls.join('\n')}`
}
