/** `script`: runs the file's script over the step's tools. Its value is what the script returns. */
import { MillraceError } from '../../part/error.ts'
import { joinPath } from '../../part/path.ts'
import { checkOutput } from '../../pipeline/check-input.ts'
import { resolve } from '../../pipeline/evaluate.ts'
import type { ScriptConfig } from '../../pipeline/pipeline.ts'
import { wholeReference } from '../../pipeline/reference.ts'
import { revisitAgents } from '../agent-tools.ts'
import type { StepOutcome } from '../container.ts'
import { runScript, scriptStart } from '../run-script.ts'
import { inStep, valuesOf, type Scope } from '../scope.ts'
import { offeredTools } from './llm.ts'

export function runScriptStep(scope: Scope, path: string, config: ScriptConfig): Promise<StepOutcome> {
  const { uses, limits, output } = config
  // As the values were when it began: a script that goes on must get the same.
  const began = scope.state.scripts.get(joinPath(path, 1))?.seq ?? scope.state.lastSeq
  const values = { ...valuesOf(scope), input: scope.inputAt(began) }
  return inStep(scope, path, scriptStart, async () => {
    const tools = await offeredTools(scope, path, uses, uses.clientTools ?? [])
    await revisitAgents(scope, path, uses.agentTools ?? [])
    const code = codeOf(config, values)
    const input = config.input === undefined ? {} : resolve(config.input, values)
    const work = { code, input, tools, limits, id: `script.${path}`, messages: () => [] }
    const { value } = await runScript(scope, path, work)
    const result = output === undefined ? value : checkOutput(output, value)
    return { value: { value: result }, result }
  })
}

/** Only a single reference is resolved. Otherwise a caller's text could become code. */
function codeOf({ code }: ScriptConfig, values: Parameters<typeof resolve>[1]): string {
  if (wholeReference(code) === undefined) return code
  const text = resolve(code, values)
  if (typeof text === 'string') return text
  throw new MillraceError(
    'bad-script',
    `${code} must be the text of a script, not ${text === null ? 'null' : typeof text}.`,
  )
}
